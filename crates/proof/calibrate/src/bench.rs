//! The bench on which tests are carried out: reference servers, and the engine under test.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

use plimsoll_engine::{Control, Progress, Run, RunResult, SampleBatch, SampleSink};
use plimsoll_measure::Sample;
use plimsoll_mock::MockConfig;
use plimsoll_profile::{Environment, Overrides, Plan, Profile, Purpose, load};

use crate::cores::{Cores, stay_on};
use crate::error::CalibrateError;
use crate::ran::Ran;
use crate::record::Floor;
use crate::server::{Process, Server, ServerSpec};
use crate::wait::wakes;

/// How thorough a calibration is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// Longer runs, and more of them.
    pub full: bool,
    /// Length of the soak (T18), in minutes; 0 leaves it out.
    pub soak_minutes: u32,
}

/// The bench.
#[derive(Debug)]
pub struct Bench {
    /// The tool's own binary, for processes of their own.
    exe: Option<PathBuf>,
    cores: Option<Cores>,
    effort: Effort,
    scratch: tempfile::TempDir,
    floor: OnceLock<Floor>,
}

impl Bench {
    /// A bench. With `exe`, the `plimsoll` binary, reference servers are processes of their own on a core of their
    /// own; without it they are threads of this process, and tests that need a process cannot be carried out.
    ///
    /// # Errors
    /// Where there is no room for temporary files.
    pub fn new(exe: Option<PathBuf>, effort: Effort) -> Result<Self, CalibrateError> {
        let scratch = tempfile::tempdir().map_err(CalibrateError::system("no temporary folder"))?;
        let cores = exe.as_ref().and_then(|_| Cores::choose());
        Ok(Self { exe, cores, effort, scratch, floor: OnceLock::new() })
    }

    /// Have the generator and the reference server a core each?
    pub const fn separate_cores(&self) -> bool {
        self.cores.is_some()
    }

    pub(crate) const fn effort(&self) -> Effort {
        self.effort
    }

    /// The first in a usual calibration, the second in a thorough one.
    pub(crate) fn either<T>(&self, usual: T, full: T) -> T {
        if self.effort.full { full } else { usual }
    }

    /// When a thread that does nothing else wakes, on the generator's core, at so many deadlines per second, in seconds.
    pub(crate) fn bare_timer(&self, rate: f64, seconds: f64) -> Result<Vec<f64>, CalibrateError> {
        let core = self.cores.map(|cores| cores.generator);
        let timer =
            thread::spawn(move || core.map_or(Ok(()), stay_on).and_then(|()| wakes(rate, seconds)));
        timer
            .join()
            .map_err(|_| CalibrateError::Missing("the timer's thread panicked".to_owned()))?
    }

    /// A folder for temporary files.
    pub(crate) fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    /// The instrument's own limits, once T1 has found them.
    pub(crate) fn floor(&self) -> Option<Floor> {
        self.floor.get().copied()
    }

    /// The first that T1 finds stands.
    pub(crate) fn set_floor(&self, floor: Floor) {
        self.floor.get_or_init(|| floor);
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
        match &self.exe {
            None => spec.start().map(Server::Here),
            Some(exe) => {
                let core = self.cores.map(|cores| cores.server);
                Process::start(exe, spec, core).map(Server::Process)
            }
        }
    }

    /// Starts the mock provider, with a model of the given settings.
    pub(crate) fn mock(&self, model: &str) -> Result<Server, CalibrateError> {
        // It has a core to itself, and may spin to keep its own times.
        let spin = if self.separate_cores() { "100us" } else { "0" };
        let text = format!("{{log: memory, seed: 7, spin: {spin}, other_models: {{{model}}}}}");
        self.serve(ServerSpec::Mock(Box::new(MockConfig::from_yaml(&text)?)))
    }

    /// Carries out a run against a target. One worker, unless the profile says otherwise.
    pub(crate) fn run(&self, target: &str, profile: &str) -> Result<Ran, CalibrateError> {
        self.run_under(plan(target, profile, None)?, &Control::new(), &mut |_| {})
    }

    /// Carries out part `k/n` of a run.
    pub(crate) fn run_shard(
        &self,
        target: &str,
        profile: &str,
        shard: &str,
    ) -> Result<Ran, CalibrateError> {
        self.run_under(plan(target, profile, Some(shard))?, &Control::new(), &mut |_| {})
    }

    /// Carries out a plan that can be interrupted and watched.
    pub(crate) fn run_under(
        &self,
        plan: Plan,
        control: &Control,
        observe: &mut (dyn FnMut(&Progress<'_>) + Send),
    ) -> Result<Ran, CalibrateError> {
        // Several workers need several cores. The server's notes are the kernel's, and do not suffer.
        let core = self.generator_core().filter(|_| plan.limits.workers == Some(1));
        on_core(core, || {
            let (seed, run) = (plan.seed, Run::prepare(plan)?);
            let (clock, keep) = (run.clock(), Keep::default());
            let result = run.start(Some(Box::new(keep.clone())), control, observe)?;
            Ok(Ran::new(result, keep.take(), seed, clock))
        })
    }

    /// The same without keeping the samples.
    pub(crate) fn run_unkept(
        &self,
        plan: Plan,
        control: &Control,
        observe: &mut (dyn FnMut(&Progress<'_>) + Send),
    ) -> Result<RunResult, CalibrateError> {
        on_core(self.generator_core(), || Ok(Run::prepare(plan)?.start(None, control, observe)?))
    }

    /// Does something on the generator's core; what it starts stays there.
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

/// Does something in a thread that stays on a core, as all threads and processes do that it starts.
fn on_core<T: Send>(
    core: Option<usize>,
    work: impl FnOnce() -> Result<T, CalibrateError> + Send,
) -> Result<T, CalibrateError> {
    let body = move || {
        core.map_or(Ok(()), stay_on)?;
        work()
    };
    thread::scope(|scope| scope.spawn(body).join())
        .unwrap_or_else(|_| Err(CalibrateError::panicked()))
}

/// The plan of a test. One worker, unless the profile says otherwise.
pub(crate) fn plan(
    target: &str,
    profile: &str,
    shard: Option<&str>,
) -> Result<Plan, CalibrateError> {
    let workers = if profile.contains("workers:") { "" } else { "workers: 1\n" };
    let text = format!("target: {target}\nmodel: mock\nkey: test\n{workers}{profile}\n");
    let profile = Profile::new("calibration".as_ref(), text.into_bytes());
    let overrides = Overrides { shard: shard.map(str::to_owned), ..Overrides::default() };
    Ok(load(&profile, &Environment::default(), &overrides, Purpose::Run)?)
}

/// Keeps every sample.
#[derive(Clone, Default)]
struct Keep(Arc<Mutex<Vec<Sample>>>);

impl Keep {
    fn take(&self) -> Vec<Sample> {
        self.0.lock().map(|mut samples| std::mem::take(&mut *samples)).unwrap_or_default()
    }
}

impl SampleSink for Keep {
    fn write(&mut self, batch: &SampleBatch) -> io::Result<()> {
        let mut kept = self.0.lock().map_err(|_| io::Error::other("a reader panicked"))?;
        kept.extend_from_slice(&batch.samples);
        Ok(())
    }
}
