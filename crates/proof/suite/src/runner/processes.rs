//! Starts gateways and providers.

use std::net::TcpListener;
use std::time::Duration;

use plimsoll_measure::Nanos;

use super::SuiteRunner;
use crate::child::{Child, ChildSpec};
use crate::error::SuiteError;
use crate::http_get::get;
use crate::target::{Gateway, Provider};

/// How a gateway was started.
#[derive(Debug)]
pub(crate) struct GatewayCommand {
    pub(crate) command: String,
    /// From its start to its first answer.
    pub(crate) ready_after: Nanos,
}

/// The path that is asked for until it is answered.
const HEALTH: &str = "/health";

const REFERENCE: &str = "the reference gateway";

/// Message for a port of this host that is in use.
fn taken(port: u16) -> String {
    format!("another program has port {port}: use --port 0 for a free one")
}

impl SuiteRunner<'_> {
    /// Starts the mock provider.
    pub(crate) fn provider(&mut self, flags: &[&str]) -> Result<Provider, SuiteError> {
        let mut args: Vec<_> = ["mock", "--listen", "127.0.0.1:0"].map(str::to_owned).into();
        args.extend(flags.iter().map(|&flag| flag.to_owned()));
        self.start("the mock provider", self.cores.provider, &args, HEALTH).map(Provider::new)
    }

    /// Starts the reference gateway and requests its version. `list` names settings besides its
    /// preset, and `more` are further settings.
    pub(crate) fn gateway(
        &mut self,
        preset: &str,
        list: &str,
        more: &[String],
        provider: Option<&Provider>,
    ) -> Result<Gateway, SuiteError> {
        let sets = [&self.settings(list, provider), more].concat();
        let gateway = self.launch(preset, &sets, provider, HEALTH)?;
        self.ask_version(&gateway);
        Ok(gateway)
    }

    /// The user's gateway, or a reference gateway with these settings and its provider.
    pub(crate) fn subject(
        &mut self,
        preset: &str,
        list: &str,
    ) -> Result<(Gateway, Option<Provider>), SuiteError> {
        if let Some(target) = self.target() {
            return Ok((Gateway::external(target), None));
        }
        let provider = self.provider(&[])?;
        Ok((self.gateway(preset, list, &[], Some(&provider))?, Some(provider)))
    }

    /// Starts a gateway that has only answered the readiness check.
    pub(crate) fn launch(
        &mut self,
        preset: &str,
        sets: &[String],
        provider: Option<&Provider>,
        ready: &'static str,
    ) -> Result<Gateway, SuiteError> {
        let wanted = self.gateway_port()?;
        let mut args: Vec<_> = ["gateway", "--preset", preset].map(str::to_owned).into();
        if let Some(provider) = provider {
            args.extend(["--upstream".to_owned(), provider.address().to_owned()]);
        }
        // No proxy is in front of it, so local clients may read the version without a key.
        args.extend(["--set", "admin.local=true"].map(str::to_owned));
        for set in sets {
            args.extend(["--set", set].map(str::to_owned));
        }
        let (child, args) = self.start_gateway(&args, wanted, ready)?;
        let port = child.address().rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        self.port = self.port.or(port);
        let command = self.shown(&args, provider);
        if !self.commands.iter().any(|known| known.command == command) {
            self.commands.push(GatewayCommand { command, ready_after: child.ready_after });
        }
        Ok(Gateway::reference(child, provider))
    }

    /// Starts a gateway at this port. The usual port of a suite may be taken by another suite after
    /// it was found free: then the gateway takes any.
    fn start_gateway(
        &mut self,
        args: &[String],
        wanted: u16,
        ready: &'static str,
    ) -> Result<(Child, Vec<String>), SuiteError> {
        let at = |port: u16| {
            let listen = ["--listen".to_owned(), format!("127.0.0.1:{port}")];
            args.iter().cloned().chain(listen).collect::<Vec<_>>()
        };
        let what = REFERENCE;
        let first = self.start(what, self.cores.gateway, &at(wanted), ready);
        if first.is_err()
            && wanted != 0
            && self.options.port != Some(wanted)
            && TcpListener::bind(("127.0.0.1", wanted)).is_err()
        {
            self.log(&taken(wanted));
            let any = self.start(what, self.cores.gateway, &at(0), ready)?;
            return Ok((any, at(0)));
        }
        Ok((first?, at(wanted)))
    }

    /// The port of the next gateway: the user's or the suite's port if it is free, otherwise any.
    /// The first gateway is the one under test, and has the user's port or none.
    fn gateway_port(&mut self) -> Result<u16, SuiteError> {
        let is_first = self.commands.is_empty();
        let wanted = self.options.port.or(self.usual_port).unwrap_or(0);
        if wanted == 0 || TcpListener::bind(("127.0.0.1", wanted)).is_ok() {
            return Ok(wanted);
        }
        if is_first && self.options.port.is_some() {
            return Err(SuiteError::Failed(format!("{REFERENCE} is not ready: {}", taken(wanted))));
        }
        if is_first {
            self.log(&taken(wanted));
        }
        Ok(0)
    }

    /// The command as the report shows it: parts that differ from run to run have a name.
    fn shown(&self, args: &[String], provider: Option<&Provider>) -> String {
        let folder = self.options.folder.to_string_lossy();
        let command = format!("plimsoll {}", args.join(" ")).replace(&*folder, "FOLDER");
        match provider {
            None => command,
            Some(mock) => command.replace(mock.address(), "PROVIDER"),
        }
    }

    fn start(
        &mut self,
        what: &str,
        core: Option<usize>,
        args: &[String],
        ready: &'static str,
    ) -> Result<Child, SuiteError> {
        self.children += 1;
        let log = self.options.folder.join(format!("process-{}.log", self.children));
        self.host.start(&ChildSpec { what, exe: &self.options.exe, core, args, log, ready })
    }

    /// Asks the gateway for its version and layers.
    pub(crate) fn ask_version(&mut self, gateway: &Gateway) {
        if self.version.is_some() {
            return;
        }
        let Some(address) = gateway.address() else { return };
        let response = get(address, "/admin/build", Duration::from_secs(2)).ok();
        let build =
            response.filter(|response| response.status == 200).map(|response| response.body);
        self.version = build.map(|build| build.trim().to_owned());
    }
}
