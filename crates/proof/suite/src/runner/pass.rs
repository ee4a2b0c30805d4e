//! One pass of a measurement: its load, its figures, its file.

use plimsoll_metrics::{BoundedFigure, RunSummary};
use plimsoll_report::format::{digits, or_dash, time_with_share, with_share};
use plimsoll_runner::folder::limits;

use super::{Pass, SuiteRunner};
use crate::error::SuiteError;
use crate::measurement::Measurement;
use crate::process_use::{
    CpuTime, GATEWAY, PROVIDER, STORE, busy_core, busy_host, cpu_time, parts, watched,
};
use crate::result::{BusyShares, Figures};
use crate::target::slug;

impl SuiteRunner<'_> {
    pub(super) fn report_pass(&mut self, measurement: &Measurement, pass: u32, figures: &Figures) {
        let invalid = figures.invalid.as_ref().map(|why| format!("  INVALID: {why}"));
        let invalid = invalid.or_else(|| {
            let gate = if measurement.errors_expected { 1.0 } else { measurement.error_gate };
            figures.gated(gate).map(|why| format!("  NOT USABLE: {why}"))
        });
        let line = format!(
            "{}, pass {}: {}, p99 {}, {} errors{}",
            measurement.label,
            pass + 1,
            or_dash(figures.requests_per_s, |rate: BoundedFigure| {
                with_share(format!("{}/s", digits(rate.value)), &rate, "+")
            }),
            time_with_share(figures.p99_ms),
            figures.errors,
            invalid.unwrap_or_default()
        );
        self.log(&line);
    }

    pub(super) fn pass(
        &mut self,
        measurement: &Measurement,
        pass: u32,
    ) -> Result<(Pass, String), SuiteError> {
        let plan = match self.options.threads {
            Some(threads) if !measurement.has_threads() => {
                measurement.clone().threads(Some(threads)).plan(pass)?
            }
            _ => measurement.plan(pass)?,
        };
        let limits = limits(&plan.thresholds)?;
        let summary = self.host.run(plan, watched(parts(&measurement.target)), self.control)?;
        let mut summary = summary.with_limits(&limits);
        summary.metadata.environment.clone_from(&self.options.environment);
        summary.health.calibration.clone_from(&self.options.calibration);
        let mut figures = Figures::from_summary(&summary, measurement.responses)?;
        self.add_cpu(&mut figures, &summary);
        figures.busy_host = busy_host(&summary).or_else(|| busy_core(&figures.busy, &self.cores));
        let file = format!("measurements/{}-{}.json", slug(&measurement.label), pass + 1);
        self.write(&file, &serde_json::to_vec(&summary)?)?;
        Ok((Pass { summary, figures }, file))
    }

    /// Adds the CPU time of each process over the measured window.
    fn add_cpu(&self, figures: &mut Figures, summary: &RunSummary) {
        let (gateway, provider) = (cpu_time(summary, GATEWAY), cpu_time(summary, PROVIDER));
        let workers = &summary.health.worker_cpu_shares;
        figures.threads = u64::try_from(workers.len()).ok().filter(|threads| *threads > 0);
        let generator = workers.iter().sum::<f64>() / workers.len().max(1) as f64;
        figures.busy = BusyShares {
            gateway: share_of_wall(gateway),
            provider: share_of_wall(provider),
            store: share_of_wall(cpu_time(summary, STORE)),
            generator: (!workers.is_empty()).then_some(generator),
            busiest_worker: workers.iter().copied().reduce(f64::max),
            waited: summary.health.worker_wait_shares.iter().copied().reduce(f64::max),
            shared: self.cores.shared(),
        };
        let counters = &summary.results.total.counters;
        let answered = counters.completed + counters.rejected;
        figures.gateway_cpu_us =
            gateway.filter(|_| answered > 0).map(|time| time.cpu_s * 1e6 / answered as f64);
        figures.gateway_memory = gateway.map(|time| time.memory).filter(|memory| *memory > 0.0);
    }
}

fn share_of_wall(time: Option<CpuTime>) -> Option<f64> {
    time.filter(|time| time.wall_s > 0.0).map(|time| time.cpu_s / time.wall_s)
}
