"""llama.cpp's server with a tiny model that is made here: random weights, 256 bytes and a few words as tokens.

Usage: llama_server.py LOG. Prints its port, serves until its standard input ends, and then writes the server's own
counts of tokens to LOG: `input N` and `output N`.
"""

import sys
import tempfile
import urllib.request
from pathlib import Path

import gguf
import numpy
import xllamacpp

WIDTH, HEADS, INNER = 64, 4, 128
TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:"
# Kinds of tokens in llama.cpp: ordinary, unknown, controlling, a byte.
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6


def make_model(path):
    """A model of one layer in the form of Llama's."""
    random = numpy.random.default_rng(7)
    words = [f"\u2581{word}" for word in ["the", "a", "of", "to", "and", "in", "is", "it"]]
    tokens = ["<unk>", "<s>", "</s>", *[f"<0x{byte:02X}>" for byte in range(256)], *words]
    kinds = [UNKNOWN, CONTROL, CONTROL, *[BYTE] * 256, *[NORMAL] * len(words)]
    model = gguf.GGUFWriter(path, "llama")
    model.add_context_length(4096)
    model.add_embedding_length(WIDTH)
    model.add_block_count(1)
    model.add_feed_forward_length(INNER)
    model.add_head_count(HEADS)
    model.add_head_count_kv(HEADS)
    model.add_layer_norm_rms_eps(1e-5)
    model.add_rope_dimension_count(WIDTH // HEADS)
    model.add_vocab_size(len(tokens))
    model.add_tokenizer_model("llama")
    model.add_token_list(tokens)
    model.add_token_scores([0.0] * 3 + [-1.0] * 256 + [-0.5] * len(words))
    model.add_token_types(kinds)
    model.add_bos_token_id(1)
    model.add_eos_token_id(2)
    model.add_unk_token_id(0)
    model.add_chat_template(TEMPLATE)
    for name in ["output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"]:
        model.add_tensor(f"{name}.weight", numpy.ones(WIDTH, numpy.float32))
    shapes = {name: (len(tokens), WIDTH) for name in ["token_embd", "output"]}
    shapes |= {f"blk.0.attn_{part}": (WIDTH, WIDTH) for part in ["q", "k", "v", "output"]}
    shapes |= {"blk.0.ffn_gate": (INNER, WIDTH), "blk.0.ffn_up": (INNER, WIDTH), "blk.0.ffn_down": (WIDTH, INNER)}
    for name, shape in shapes.items():
        model.add_tensor(f"{name}.weight", (random.standard_normal(shape) * 0.2).astype(numpy.float32))
    model.write_header_to_file()
    model.write_kv_data_to_file()
    model.write_tensors_to_file()
    model.close()


def counts(url):
    """Tokens that the server has read and written, as its own metrics say."""
    page = urllib.request.urlopen(f"{url}/metrics").read().decode()
    values = dict(line.split() for line in page.splitlines() if line and not line.startswith("#"))
    cached = int(values["llamacpp:prompt_tokens_cached_total"])
    return int(values["llamacpp:prompt_tokens_total"]) + cached, int(values["llamacpp:tokens_predicted_total"])


file = Path(tempfile.mkdtemp()) / "tiny.gguf"
make_model(file)
parameters = xllamacpp.CommonParams()
parameters.model.path = str(file)
parameters.hostnames = ["127.0.0.1"]
parameters.port = 0
parameters.n_parallel = 4
parameters.n_ctx = 4 * 4096
parameters.cpuparams.n_threads = 1
parameters.endpoint_metrics = True
parameters.warmup = False
server = xllamacpp.Server(parameters)
print(server.listening_address.rsplit(":", 1)[1], flush=True)
sys.stdin.read()
with open(sys.argv[1], "a") as log:
    print("input {}\noutput {}".format(*counts(server.listening_address)), file=log)
