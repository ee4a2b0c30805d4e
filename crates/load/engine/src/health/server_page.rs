//! The page of metrics of a server: its queue, caches and tokens, by `server_metrics.tsv`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::metrics_page::{FromPage, MetricsPage, Sample};

/// The server of rows that match any metric with this end.
const OTHER: &str = "other";
/// The lines that a histogram has for each of its buckets.
const BUCKETS: &str = "_bucket";

static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let lines = include_str!("server_metrics.tsv").lines().filter(|line| !line.starts_with('#'));
    lines.map(Row::parse).collect()
});

/// A row of the table.
#[derive(Debug)]
struct Row {
    server: &'static str,
    /// With underscores for colons.
    metric: String,
    labels: Vec<(String, String)>,
    quantity: &'static str,
    /// The highest of several series counts.
    is_ratio: bool,
    /// To milliseconds, for times.
    scale: f64,
}

impl Row {
    fn parse(line: &'static str) -> Self {
        let mut columns = line.split('\t');
        let [server, metric, labels, quantity, _kind, unit] =
            std::array::from_fn(|_| columns.next().unwrap_or_default());
        let labels =
            labels.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        let (metric, labels) = (metric.replace(':', "_"), labels.into_iter().collect());
        let scale = match unit {
            "s" => 1e3,
            "us" => 1e-3,
            _ => 1.0,
        };
        Self { server, metric, labels, quantity, is_ratio: unit == "ratio", scale }
    }

    fn has_name(&self, name: &str) -> bool {
        if self.server == OTHER { name.ends_with(&self.metric) } else { name == self.metric }
    }

    /// Adds the value of a series to those of others.
    fn add(&self, known: &mut f64, value: f64) {
        let value = value * self.scale;
        *known = if self.is_ratio { known.max(value) } else { *known + value };
    }
}

/// The quantities of a server at one moment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ServerReading {
    /// Its name in the table; empty where only patterns match.
    pub(crate) server: &'static str,
    pub(crate) values: BTreeMap<&'static str, f64>,
}

impl FromPage for ServerReading {
    fn read(page: &MetricsPage, text: &str) -> Result<Self, String> {
        let mut found: BTreeMap<(usize, &str), f64> = BTreeMap::new();
        let mut last: (&str, Vec<(usize, &Row)>) = Default::default();
        for sample in text.lines().filter_map(Sample::read).filter(|one| page.chooses(one)) {
            // The series of a metric follow each other.
            if sample.name != last.0 && !sample.name.ends_with(BUCKETS) {
                let name = sample.name.replace(':', "_");
                let rows = ROWS.iter().enumerate().filter(|(_, row)| row.has_name(&name));
                last = (sample.name, rows.collect());
            }
            let rows = last.1.iter().filter(|_| last.0 == sample.name);
            for (index, row) in rows.filter(|(_, row)| sample.has(&row.labels)) {
                row.add(found.entry((*index, sample.name)).or_default(), sample.value);
            }
        }
        let first = found.keys().next().map(|(index, _)| ROWS[*index].server);
        let server = first.ok_or_else(|| {
            format!(
                "{page} has no metric of a known server; give the page of its metrics, often /metrics"
            )
        })?;
        let mut values = BTreeMap::new();
        let known = found.iter().map(|((index, _), value)| (&ROWS[*index], *value));
        for (row, value) in known.filter(|(row, _)| (row.server == OTHER) == (server == OTHER)) {
            values.entry(row.quantity).or_insert(value);
        }
        Ok(Self { server: if server == OTHER { "" } else { server }, values })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> ServerReading {
        ServerReading::read(&"http://h/metrics".parse().unwrap(), text).unwrap()
    }

    /// Excerpts of pages as the servers' documentation and sources have them, with their server and
    /// the quantities in them.
    const PAGES: [(&str, &str, &str); 10] = [
        (
            "vLLM",
            "# TYPE vllm:num_requests_running gauge\n\
             vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 3.0\n\
             vllm:num_requests_running{engine=\"1\",model_name=\"m\"} 4.0\n\
             vllm:num_requests_waiting{engine=\"0\",model_name=\"m\"} 12.0\n\
             vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"m\"} 0.25\n\
             vllm:kv_cache_usage_perc{engine=\"1\",model_name=\"m\"} 0.75\n\
             vllm:gpu_cache_usage_perc{engine=\"0\",model_name=\"m\"} 0.9\n\
             vllm:prefix_cache_queries_total{engine=\"0\"} 4096.0\n\
             vllm:prefix_cache_hits_total{engine=\"0\"} 1024.0\n\
             vllm:num_preemptions_total{engine=\"0\"} 2.0\n\
             vllm:request_queue_time_seconds_bucket{le=\"0.3\"} 5.0\n\
             vllm:request_queue_time_seconds_count{engine=\"0\"} 8.0\n\
             vllm:request_queue_time_seconds_sum{engine=\"0\"} 2.5\n\
             vllm:spec_decode_num_draft_tokens_total{engine=\"0\"} 50.0\n\
             vllm:spec_decode_num_accepted_tokens_total{engine=\"0\"} 30.0\n\
             vllm:generation_tokens_total{engine=\"0\"} 900.0\n",
            "accepted 30, drafted 50, kv_cache 0.75, output_tokens 900, preemptions 2, \
             prefix_hits 1024, prefix_queries 4096, queue_time 2500, queued 8, running 7, \
             waiting 12",
        ),
        (
            "SGLang",
            "sglang:num_running_reqs{model_name=\"m\"} 5.0\n\
             sglang:num_queue_reqs{model_name=\"m\"} 2.0\n\
             sglang:token_usage{model_name=\"m\"} 0.28\n\
             sglang:cache_hit_rate{model_name=\"m\"} 0.5\n\
             sglang:prompt_tokens_total{model_name=\"m\"} 8128902.0\n\
             sglang:cached_tokens_total{model_name=\"m\"} 100.0\n",
            "input_tokens 8128902, kv_cache 0.28, prefix_hit_rate 0.5, prefix_hits 100, \
             prefix_queries 8128902, running 5, waiting 2",
        ),
        (
            "TGI",
            "tgi_batch_current_size 4\ntgi_queue_size 9\n\
             tgi_request_queue_duration_sum 1.5\ntgi_request_queue_duration_count 3\n\
             tgi_request_generated_tokens_sum 70\n",
            "output_tokens 70, queue_time 1500, queued 3, running 4, waiting 9",
        ),
        (
            "llama.cpp",
            "llamacpp:prompt_tokens_total 300\nllamacpp:prompt_tokens_cached_total 100\n\
             llamacpp:tokens_predicted_total 64\nllamacpp:requests_processing 1\n\
             llamacpp:requests_deferred 4\n",
            "output_tokens 64, prefix_hits 100, prefix_misses 300, running 1, waiting 4",
        ),
        (
            "Triton",
            "nv_inference_request_success{model=\"tensorrt_llm\",version=\"1\"} 10\n\
             nv_inference_queue_duration_us{model=\"tensorrt_llm\",version=\"1\"} 5000\n\
             nv_trt_llm_request_metrics{model=\"tensorrt_llm\",request_type=\"max\"} 512\n\
             nv_trt_llm_request_metrics{model=\"tensorrt_llm\",request_type=\"scheduled\"} 6\n\
             nv_trt_llm_request_metrics{model=\"tensorrt_llm\",request_type=\"waiting\"} 1\n\
             nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=\"fraction\"} 0.125\n",
            "kv_cache 0.125, queue_time 5, queued 10, running 6, waiting 1",
        ),
        (
            "TensorRT-LLM",
            "trtllm_num_requests_running{model_name=\"m\"} 2.0\n\
             trtllm_num_requests_waiting{model_name=\"m\"} 7.0\n\
             trtllm_kv_cache_utilization{model_name=\"m\"} 0.62\n\
             trtllm_kv_cache_reused_blocks_total{model_name=\"m\"} 30.0\n\
             trtllm_kv_cache_missed_blocks_total{model_name=\"m\"} 10.0\n",
            "kv_cache 0.62, prefix_hits 30, prefix_misses 10, running 2, waiting 7",
        ),
        (
            "LiteLLM",
            "litellm_in_flight_requests 3.0\n\
             litellm_input_tokens_metric_total{model=\"a\"} 200.0\n\
             litellm_input_tokens_metric_total{model=\"b\"} 100.0\n\
             litellm_input_cached_tokens_metric_total{model=\"a\"} 60.0\n\
             litellm_output_tokens_metric_total{model=\"a\"} 9.0\n",
            "input_tokens 300, output_tokens 9, prefix_hits 60, prefix_queries 300, running 3",
        ),
        (
            "Envoy",
            "envoy_cluster_upstream_rq_active{envoy_cluster_name=\"llm\"} 8\n\
             envoy_cluster_upstream_rq_pending_active{envoy_cluster_name=\"llm\"} 2\n",
            "running 8, waiting 2",
        ),
        (
            "",
            "acme_num_requests_running 2\nacme_queue_depth{pool=\"a\"} 1\n\
             acme_kv_cache_utilization 0.5\nacme_prompt_tokens_total NaN\n",
            "kv_cache 0.5, running 2, waiting 1",
        ),
        // The separator of remote writers and of newer versions.
        ("SGLang", "sglang_num_queue_reqs 2\nacme_queue_depth 1", "waiting 2"),
    ];

    #[test]
    fn each_server_is_recognized_and_its_quantities_are_read() {
        for (server, page, expected) in PAGES {
            let reading = read(page);
            let shown: Vec<_> =
                reading.values.iter().map(|(name, value)| format!("{name} {value}")).collect();
            assert_eq!((reading.server, &*shown.join(", ")), (server, expected));
        }
    }

    #[test]
    fn labels_choose_series_and_a_page_without_known_metrics_is_an_error() {
        let page: MetricsPage = "http://h/m#model_name=b".parse().unwrap();
        let text = "vllm:num_requests_waiting{model_name=\"a\"} 5\n\
                    vllm:num_requests_waiting{model_name=\"b\"} 2\n";
        let reading = ServerReading::read(&page, text).unwrap();
        assert_eq!(reading.values, BTreeMap::from([("waiting", 2.0)]));
        let error = ServerReading::read(&page, "up 1\n<html>").unwrap_err();
        assert!(error.starts_with("http://h/m has no metric of a known server; "), "{error}");
    }
}
