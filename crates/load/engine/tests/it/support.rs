//! A mock, a plan for a run against it, and the records of both sides.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use plimsoll_engine::{Control, Progress, Run, RunResult, SampleBatch, SampleSink};
use plimsoll_measure::{Outcome, Sample, TaskSample};
use plimsoll_metrics::Counters;
use plimsoll_mock::{LogRecord, Mock, MockConfig};
use plimsoll_plan::Plan;
use plimsoll_profile::{EnvVars, Overrides, Profile, Purpose, load};

/// A chat of one turn.
pub const CHAT: &str =
    "content: {mode: sized, approx_input_tokens: 64}\nmax_tokens: 8\ndrain: 5s\n";

/// A mock that remembers every request; its models have these settings.
pub fn mock(model: &str) -> Mock {
    mock_with(&format!("other_models: {{{model}}}"))
}

/// A mock with this configuration that remembers every request.
pub fn mock_with(configuration: &str) -> Mock {
    let text = format!("log: memory\nseed: 7\n{configuration}\n");
    Mock::spawn(&MockConfig::from_yaml(&text).unwrap(), "127.0.0.1:0".parse().unwrap()).unwrap()
}

/// The log, once it has this many rows: a row is written when the mock is done with a request.
pub fn log_of(mock: &Mock, rows: usize) -> Vec<LogRecord> {
    let (mut log, start) = (Vec::new(), Instant::now());
    while log.len() < rows && start.elapsed() < Duration::from_secs(10) {
        log.extend(mock.take_log());
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(log.len(), rows);
    log
}

/// A plan against a target: the profile's text plus the target.
pub fn plan(target: &str, profile: &str) -> Plan {
    plan_with(target, profile, &Overrides::default())
}

pub fn plan_with(target: &str, profile: &str, overrides: &Overrides) -> Plan {
    let text = format!("target: {target}\nmodel: mock\nkey: test\n{profile}\n");
    let profile = Profile::new("test.yaml".as_ref(), text.into_bytes());
    load(&profile, &EnvVars::default(), overrides, Purpose::Run).unwrap()
}

pub fn url(mock: &Mock) -> String {
    format!("http://{}", mock.addr())
}

/// Keeps the samples of a run, and the tasks of its agents.
#[derive(Clone, Default)]
struct Keep(Arc<Mutex<(Vec<Sample>, Vec<TaskSample>)>>);

impl SampleSink for Keep {
    fn write(&mut self, batch: &SampleBatch) -> io::Result<()> {
        let mut kept = self.0.lock().unwrap();
        kept.0.extend_from_slice(&batch.samples);
        kept.1.extend_from_slice(&batch.tasks);
        Ok(())
    }
}

/// A finished run.
pub struct Ran {
    pub result: RunResult,
    pub samples: Vec<Sample>,
    pub tasks: Vec<TaskSample>,
    pub started_unix_ns: u64,
}

impl Ran {
    pub fn accounting(&self) -> Counters {
        *self.result.snapshot.total(|_| true).counters()
    }

    pub fn count(&self, outcome: &str) -> usize {
        self.samples.iter().filter(|sample| sample.outcome.name() == outcome).count()
    }

    /// Samples that reached the target.
    pub fn sent(&self) -> usize {
        self.samples.iter().filter(|sample| sample.outcome != Outcome::NeverSent).count()
    }
}

pub fn run(plan: Plan) -> Ran {
    run_under(plan, &Control::new(), &mut |_| {})
}

pub fn run_under(plan: Plan, control: &Control, observe: &mut dyn FnMut(&Progress<'_>)) -> Ran {
    run_prepared(Run::prepare(plan).unwrap(), control, observe)
}

pub fn run_prepared(run: Run, control: &Control, observe: &mut dyn FnMut(&Progress<'_>)) -> Ran {
    let started_unix_ns = run.clock().unix_nanos(plimsoll_measure::Moment::EPOCH);
    let keep = Keep::default();
    let result = run.start(Some(Box::new(keep.clone())), control, observe).unwrap();
    let (samples, tasks) = keep.0.lock().unwrap().clone();
    let ran = Ran { result, samples, tasks, started_unix_ns };
    // Scheduled turns and ended turns are counted independently; the rows must agree with both.
    assert!(ran.accounting().balanced(), "{}", ran.accounting());
    assert_eq!(ran.accounting().scheduled as usize, ran.samples.len());
    ran
}

/// The mock's record of each sample, by request id.
pub fn joined<'l>(ran: &Ran, log: &'l [LogRecord]) -> Vec<(Sample, &'l LogRecord)> {
    let by_id: std::collections::HashMap<&str, &LogRecord> =
        log.iter().filter_map(|record| Some((record.request_id.as_deref()?, record))).collect();
    let ids = ran.result.metadata.run.id_seed();
    let id = |sample: &Sample| {
        let conversation = plimsoll_workload::conversation_id(ids, sample.conversation);
        format!("{}-{}", conversation.as_str(), sample.turn)
    };
    ran.samples
        .iter()
        .filter_map(|sample| Some((*sample, *by_id.get(id(sample).as_str())?)))
        .collect()
}
