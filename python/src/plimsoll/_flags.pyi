# The keywords of the functions of this package. A test of the program writes this file.

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

class RunFlags(TypedDict, total=False):
    a2a: Any
    abort_on_error_rate: Any
    abort_on_errors: str | float | Path
    agent: Any
    allow_failures: bool
    allow_invalid: bool
    arrivals: str | float | Path
    as_: str | float | Path
    bands: Any
    bind: Any
    budget: Any
    budget_cost: str | float | Path
    budget_tokens: str | float | Path
    bust: bool
    ca_file: str | float | Path
    cache_mode: Any
    category: Any
    cert: str | float | Path
    cert_key: str | float | Path
    concurrency: str | float | Sequence[float]
    connect_timeout: Any
    connect_to: Mapping[str, Any] | Sequence[Any]
    content: Any
    drain: Any
    duration: str | float | Path
    event_times: Any
    expect: Any
    extra_body: str | float | Path
    gate: Any
    goodput: Any
    headers: Mapping[str, Any] | Sequence[Any]
    html: bool
    http: Any
    http_version: Any
    idle_limit: Any
    ignore: Mapping[str, Any] | Sequence[Any]
    ignore_eos: bool
    insecure: bool
    junit: str | float | Path
    kernel_timestamps: Any
    labels: Any
    launch: str | float | Path
    lost_at_most: str | float | Path
    max_body: Any
    max_connections: Any
    max_in_flight: Any
    max_requests: str | float | Path
    max_tokens: str | float | Path
    max_tokens_field: Any
    mcp: Any
    metric_label: Mapping[str, Any] | Sequence[Any]
    model: str | float | Path
    name: str | float | Path
    on_loss: str | float | Path
    once: bool
    output_tokens: Any
    overflow: Any
    parameters: Any
    pin_workers: Any
    policy_decision: Any
    prefix_pool: Any
    prefix_share: str | float | Path
    prefix_tokens: str | float | Path
    prefixes: str | float | Path
    price: str | float | Path
    probe: bool
    processes: str | float | Path
    protocol: str | float | Path
    proxy: str | float | Path
    push_metrics: str | float | Path
    rate: str | float | Sequence[float]
    redirects: Any
    replies: str | float | Path
    requests_per_connection: Any
    response_headers: Any
    resumption: bool
    retry_after: Any
    retry_reused: Any
    run_id: str | float | Path
    scenarios: Any
    seed: str | float | Path
    server_metrics: Mapping[str, Any] | Sequence[Any]
    settings: Mapping[str, Any] | Sequence[Any]
    shard: str | float | Path
    skip_broken: bool
    smoke: bool
    speed: str | float | Path
    spin: Any
    stages: str | Sequence[str]
    start_at: str | float | Path
    start_timeout: str | float | Path
    stream: Any
    streams_per_connection: Any
    system: str | float | Path
    target: str | float | Path
    targets: Any
    temperature: str | float | Path
    think_time: Any
    thresholds: Mapping[str, Any] | Sequence[Any]
    timeout: str | float | Path
    tls: Any
    tokenizer: Any
    tool_result: Any
    trace: Any
    turns: Any
    unix_socket: str | float | Path
    verbose: bool
    versus: Any
    warmup: str | float | Path
    watch: Mapping[str, Any] | Sequence[Any]
    websocket: Any
    workers: Any
    yes: bool

class HttpFlags(TypedDict, total=False):
    abort_on_errors: str | float | Path
    allow_failures: bool
    allow_invalid: bool
    arrivals: str | float | Path
    basic_auth: str | float | Path
    budget_cost: str | float | Path
    budget_tokens: str | float | Path
    ca_file: str | float | Path
    cert: str | float | Path
    cert_key: str | float | Path
    concurrency: str | float | Sequence[float]
    connect_to: Mapping[str, Any] | Sequence[Any]
    duration: str | float | Path
    expect: str | float | Path
    headers: Mapping[str, Any] | Sequence[Any]
    http2: str | float | Path
    ignore: Mapping[str, Any] | Sequence[Any]
    insecure: bool
    junit: str | float | Path
    keepalive: bool
    launch: str | float | Path
    lost_at_most: str | float | Path
    max_requests: str | float | Path
    method: str | float | Path
    metric_label: Mapping[str, Any] | Sequence[Any]
    on_loss: str | float | Path
    price: str | float | Path
    probe: bool
    processes: str | float | Path
    proxy: str | float | Path
    push_metrics: str | float | Path
    rate: str | float | Sequence[float]
    redirects: str | float | Path
    resumption: bool
    run_id: str | float | Path
    seed: str | float | Path
    server_metrics: Mapping[str, Any] | Sequence[Any]
    settings: Mapping[str, Any] | Sequence[Any]
    shard: str | float | Path
    start_at: str | float | Path
    start_timeout: str | float | Path
    thresholds: Mapping[str, Any] | Sequence[Any]
    timeout: str | float | Path
    unix_socket: str | float | Path
    urls: str | float | Path
    warmup: str | float | Path
    watch: Mapping[str, Any] | Sequence[Any]

class LlmFlags(TypedDict, total=False):
    abort_on_errors: str | float | Path
    allow_failures: bool
    allow_invalid: bool
    arrivals: str | float | Path
    as_: str | float | Path
    budget_cost: str | float | Path
    budget_tokens: str | float | Path
    bust: bool
    ca_file: str | float | Path
    cert: str | float | Path
    cert_key: str | float | Path
    connect_to: Mapping[str, Any] | Sequence[Any]
    duration: str | float | Path
    extra_body: str | float | Path
    goodput: str | float | Path
    headers: Mapping[str, Any] | Sequence[Any]
    html: bool
    ignore: Mapping[str, Any] | Sequence[Any]
    ignore_eos: bool
    in_order: bool
    insecure: bool
    isl: str | float | Path
    isl_stddev: str | float | Path
    junit: str | float | Path
    launch: str | float | Path
    lost_at_most: str | float | Path
    max_requests: str | float | Path
    metric_label: Mapping[str, Any] | Sequence[Any]
    on_loss: str | float | Path
    osl: str | float | Path
    osl_stddev: str | float | Path
    prefix_share: str | float | Path
    prefix_tokens: str | float | Path
    prefixes: str | float | Path
    price: str | float | Path
    print_profile: bool
    probe: bool
    processes: str | float | Path
    prompts: str | float | Path
    protocol: str | float | Path
    proxy: str | float | Path
    push_metrics: str | float | Path
    replies: str | float | Path
    resumption: bool
    run_id: str | float | Path
    seed: str | float | Path
    server_metrics: Mapping[str, Any] | Sequence[Any]
    settings: Mapping[str, Any] | Sequence[Any]
    shard: str | float | Path
    skip_broken: bool
    speed: str | float | Path
    start_at: str | float | Path
    start_timeout: str | float | Path
    stream: bool
    strict: bool
    system: str | float | Path
    temperature: str | float | Path
    thresholds: Mapping[str, Any] | Sequence[Any]
    timeout: str | float | Path
    tokenizer: str | float | Path
    unix_socket: str | float | Path
    warmup: str | float | Path
    watch: Mapping[str, Any] | Sequence[Any]

class VersusFlags(TypedDict, total=False):
    abort_on_errors: str | float | Path
    allow_failures: bool
    allow_invalid: bool
    arrivals: str | float | Path
    budget_cost: str | float | Path
    budget_tokens: str | float | Path
    ca_file: str | float | Path
    cert: str | float | Path
    cert_key: str | float | Path
    concurrency: str | float | Sequence[float]
    connect_to: Mapping[str, Any] | Sequence[Any]
    control: str | float | Path
    decide: bool
    direct: str | float | Path
    duration: str | float | Path
    every: str | float | Path
    extra_body: str | float | Path
    headers: Mapping[str, Any] | Sequence[Any]
    html: bool
    ignore: Mapping[str, Any] | Sequence[Any]
    ignore_eos: bool
    insecure: bool
    junit: str | float | Path
    launch: str | float | Path
    lost_at_most: str | float | Path
    margin: str | float | Path
    max_requests: str | float | Path
    max_tokens: str | float | Path
    metric_label: Mapping[str, Any] | Sequence[Any]
    model: str | float | Path
    name: str | float | Path
    on_loss: str | float | Path
    prefix_share: str | float | Path
    prefix_tokens: str | float | Path
    prefixes: str | float | Path
    price: str | float | Path
    probe: bool
    processes: str | float | Path
    protocol: str | float | Path
    proxy: str | float | Path
    push_metrics: str | float | Path
    rate: str | float | Sequence[float]
    reference: str | float | Path
    resumption: bool
    rounds: str | float | Path
    run_id: str | float | Path
    schedule: str | float | Path
    seed: str | float | Path
    server_metrics: Mapping[str, Any] | Sequence[Any]
    settings: Mapping[str, Any] | Sequence[Any]
    shard: str | float | Path
    stages: str | Sequence[str]
    start_at: str | float | Path
    start_timeout: str | float | Path
    system: str | float | Path
    target: Mapping[str, Any] | Sequence[Any]
    temperature: str | float | Path
    timeout: str | float | Path
    unix_socket: str | float | Path
    warmup: str | float | Path
    watch: Mapping[str, Any] | Sequence[Any]

class KneeFlags(TypedDict, total=False):
    abort_on_errors: str | float | Path
    allow_failures: bool
    arrivals: str | float | Path
    at_least: str | float | Path
    budget: str | float | Path
    budget_cost: str | float | Path
    budget_tokens: str | float | Path
    ca_file: str | float | Path
    cert: str | float | Path
    cert_key: str | float | Path
    concurrency: str | float | Sequence[float]
    confirm: str | float | Path
    connect_to: Mapping[str, Any] | Sequence[Any]
    direct: str | float | Path
    extra_body: str | float | Path
    headers: Mapping[str, Any] | Sequence[Any]
    highest: str | float | Path
    html: bool
    ignore_eos: bool
    insecure: bool
    max_requests: str | float | Path
    max_tokens: str | float | Path
    model: str | float | Path
    name: str | float | Path
    precision: str | float | Path
    prefix_share: str | float | Path
    prefix_tokens: str | float | Path
    prefixes: str | float | Path
    price: str | float | Path
    protocol: str | float | Path
    proxy: str | float | Path
    rate: str | float | Sequence[float]
    resumption: bool
    run_id: str | float | Path
    seed: str | float | Path
    settings: Mapping[str, Any] | Sequence[Any]
    shard: str | float | Path
    stages: str | Sequence[str]
    start: str | float | Path
    system: str | float | Path
    target: Mapping[str, Any] | Sequence[Any]
    temperature: str | float | Path
    timeout: str | float | Path
    unix_socket: str | float | Path
    users: bool

class CompareFlags(TypedDict, total=False):
    allow_different: Mapping[str, Any] | Sequence[Any]
    gates: Mapping[str, Any] | Sequence[Any]
    html: bool
    inconclusive: str | float | Path
    junit: str | float | Path
    markdown: str | float | Path
    regress_pct: str | float | Path
