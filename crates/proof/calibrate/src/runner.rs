//! The means of experiments: reference servers, and runs of the engine.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread;

use plimsoll_engine::{Control, Progress};
use plimsoll_mock::MockConfig;
use plimsoll_plan::Plan;
use plimsoll_profile::{EnvVars, Overrides, Profile, Purpose, load};
use plimsoll_runner::Finished;

use crate::error::CalibrateError;
use crate::record::{Costs, Floor};
use crate::server::{Cores, stay_on};
use crate::server::{Server, ServerProcess, ServerSpec, bare_timer_wakeups};

/// The thoroughness of a calibration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// Longer runs, and more of them.
    pub full: bool,
    /// Length of the soak (T18), in minutes; 0 leaves it out.
    pub soak_minutes: u32,
}

/// Starts reference servers and runs loads.
#[derive(Debug)]
pub struct Runner {
    /// The tool's own binary, for separate processes.
    exe: Option<PathBuf>,
    cores: Option<Cores>,
    effort: Effort,
    temp_dir: tempfile::TempDir,
    /// The instrument's own limits, once T1 has found them.
    pub(crate) floor: OnceLock<Floor>,
    /// Cost of load on this host, set by T29.
    pub(crate) costs: OnceLock<Costs>,
}

impl Runner {
    /// A runner. With `exe`, the `plimsoll` binary, each reference server is a process on another
    /// core. Without it, servers are threads of this process, and experiments that need a process
    /// cannot run.
    ///
    /// # Errors
    /// Where no temporary folder can be made.
    pub fn new(exe: Option<PathBuf>, effort: Effort) -> Result<Self, CalibrateError> {
        let temp_dir =
            tempfile::tempdir().map_err(CalibrateError::system("no temporary folder"))?;
        let cores = exe.as_ref().and_then(|_| Cores::choose());
        Ok(Self { exe, cores, effort, temp_dir, floor: OnceLock::new(), costs: OnceLock::new() })
    }

    /// Whether the generator and the reference server have a core each.
    pub const fn separate_cores(&self) -> bool {
        self.cores.is_some()
    }

    pub(crate) const fn effort(&self) -> Effort {
        self.effort
    }

    /// The first in a usual calibration, the second in a thorough one.
    pub(crate) fn usual_or_full<T>(&self, usual: T, full: T) -> T {
        if self.effort.full { full } else { usual }
    }

    /// Wake-up times of an otherwise idle thread on the generator's core with `rate` deadlines per
    /// second, in seconds since the first.
    pub(crate) fn bare_timer(&self, rate: f64, seconds: f64) -> Result<Vec<f64>, CalibrateError> {
        self.on_generator_core(|| bare_timer_wakeups(rate, seconds))
    }

    /// A folder for temporary files.
    pub(crate) fn temp_dir(&self) -> &Path {
        self.temp_dir.path()
    }

    /// The tool's own binary.
    pub(crate) fn exe(&self) -> Result<&Path, CalibrateError> {
        self.exe.as_deref().ok_or_else(|| {
            CalibrateError::Missing(
                "needs the `plimsoll` binary: run `plimsoll calibrate`".to_owned(),
            )
        })
    }

    /// Starts a reference server.
    pub(crate) fn serve(&self, spec: ServerSpec) -> Result<Server, CalibrateError> {
        let Some(exe) = &self.exe else { return spec.start().map(Server) };
        let core = self.cores.map(|cores| cores.server);
        Ok(Server(Box::new(ServerProcess::start(exe, spec, core)?)))
    }

    /// Starts the mock provider, with a model of the given settings.
    pub(crate) fn mock(&self, model: &str) -> Result<Server, CalibrateError> {
        // Alone on its core it may spin to keep its own times.
        let spin = if self.separate_cores() { "100us" } else { "0" };
        let text = format!("{{log: memory, seed: 7, spin: {spin}, other_models: {{{model}}}}}");
        self.serve(ServerSpec::Mock(Box::new(MockConfig::from_yaml(&text)?)))
    }

    /// Carries out a run against a target. One worker, unless the profile sets another number.
    pub(crate) fn run(&self, target: &str, profile: &str) -> Result<Finished, CalibrateError> {
        self.run_plan(plan(target, profile, None)?, &Control::new())
    }

    /// Carries out a plan, which `control` can interrupt.
    pub(crate) fn run_plan(
        &self,
        plan: Plan,
        control: &Control,
    ) -> Result<Finished, CalibrateError> {
        // Several workers need several cores. The server's timestamps are the kernel's, and do not
        // suffer.
        let core = self.generator_core().filter(|_| plan.limits.workers == Some(1));
        on_core(core, || {
            Ok(plimsoll_runner::Runner::new(plan)?.keep_samples().run(control, &mut |_| {})?)
        })
    }

    /// Carries out a plan on the generator's core without keeping its samples; `observe` sees
    /// its progress.
    pub(crate) fn run_without_samples(
        &self,
        plan: Plan,
        observe: &mut (dyn FnMut(&Progress<'_>) + Send),
    ) -> Result<Finished, CalibrateError> {
        self.on_generator_core(|| {
            Ok(plimsoll_runner::Runner::new(plan)?.run(&Control::new(), observe)?)
        })
    }

    /// Runs a closure on the generator's core; threads and processes that it starts stay there.
    pub(crate) fn on_generator_core<T: Send>(
        &self,
        work: impl FnOnce() -> Result<T, CalibrateError> + Send,
    ) -> Result<T, CalibrateError> {
        on_core(self.generator_core(), work)
    }

    fn generator_core(&self) -> Option<usize> {
        self.cores.map(|cores| cores.generator)
    }
}

/// Runs a closure in a thread that stays on a core, as all threads and processes that it starts.
fn on_core<T: Send>(
    core: Option<usize>,
    work: impl FnOnce() -> Result<T, CalibrateError> + Send,
) -> Result<T, CalibrateError> {
    thread::scope(|scope| {
        scope
            .spawn(move || {
                core.map_or(Ok(()), stay_on)?;
                work()
            })
            .join()
    })
    .unwrap_or_else(|_| Err(CalibrateError::panicked()))
}

/// The plan of an experiment. One worker, unless the profile sets another number.
pub(crate) fn plan(
    target: &str,
    profile: &str,
    shard: Option<&str>,
) -> Result<Plan, CalibrateError> {
    let workers = if profile.contains("workers:") { "" } else { "workers: 1\n" };
    let text = format!("target: {target}\nmodel: mock\nkey: test\n{workers}{profile}\n");
    let profile = Profile::new("calibration".as_ref(), text.into_bytes());
    let overrides = Overrides { shard: shard.map(str::to_owned), ..Overrides::default() };
    Ok(load(&profile, &EnvVars::default(), &overrides, Purpose::Run)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_have_one_worker_unless_the_profile_says_otherwise() {
        assert_eq!((planned_workers(""), planned_workers("workers: 2\n")), (Some(1), Some(2)));
    }

    fn planned_workers(profile: &str) -> Option<u16> {
        let text = format!("protocol: http\nhttp: {{path: /}}\nstages: '1:1s'\n{profile}");
        plan("http://127.0.0.1:1", &text, None).unwrap().limits.workers
    }

    #[test]
    fn what_panics_on_a_core_is_an_error() {
        let error = on_core(None, || -> Result<(), CalibrateError> { std::panic::panic_any(0) })
            .unwrap_err()
            .to_string();
        assert!(error.contains("panicked"), "{error}");
        assert_eq!(on_core(None, || Ok(7)).unwrap(), 7);
    }
}
