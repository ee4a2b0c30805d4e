"""vLLM's server on the CPU with a tiny model that is made here: random weights, 256 bytes and a few words as tokens.

Usage: vllm_server.py LOG. Prints its port, serves until its standard input ends, and then writes the server's own
counts of tokens to LOG: `input N` and `output N`.
"""

import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:"
WORDS = ["the a of to and in is it one two"]
#: The longest start, in seconds.
PATIENCE = 300


def make_model(folder):
    """A model of one layer in the form of Llama's, with a tokenizer of bytes and a few words."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=320, special_tokens=["</s>"], initial_alphabet=alphabet)
    tokenizer.train_from_iterator(WORDS, trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>", bos_token="</s>")
    fast.chat_template = TEMPLATE
    fast.save_pretrained(folder)
    config = LlamaConfig(
        vocab_size=320,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=64,
        max_position_embeddings=4096,
        bos_token_id=fast.bos_token_id,
        eos_token_id=fast.eos_token_id,
    )
    LlamaForCausalLM(config).save_pretrained(folder)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for(url, process):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if process.poll() is not None:
            raise SystemExit(f"vllm ended with {process.returncode}")
        try:
            urllib.request.urlopen(f"{url}/health", timeout=5)
            return
        except OSError:
            time.sleep(0.5)
    raise SystemExit("vllm does not answer")


def count(page, name):
    """The sum of a counter over its labels."""
    return int(sum(float(value) for value in re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", page, re.M)))


folder, port = Path(tempfile.mkdtemp()), free_port()
make_model(folder)
url = f"http://127.0.0.1:{port}"
environment = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
command = [Path(sys.executable).with_name("vllm"), "serve", folder, "--served-model-name", "m", "--port", str(port)]
command += ["--host", "127.0.0.1", "--max-model-len", "2048", "--max-num-seqs", "8", "--enforce-eager"]
command += ["--dtype", "float32"]
server = subprocess.Popen(command, stdout=sys.stderr, env={**os.environ, **environment}, start_new_session=True)
try:
    wait_for(url, server)
    print(port, flush=True)
    sys.stdin.read()
    page = urllib.request.urlopen(f"{url}/metrics").read().decode()
    with open(sys.argv[1], "a") as log:
        print(f"input {count(page, 'vllm:prompt_tokens_total')}", file=log)
        print(f"output {count(page, 'vllm:generation_tokens_total')}", file=log)
finally:
    server.terminate()
    server.wait()
