//! Reference servers: they know the truth, and share no code with the client.
//!
//! Each is started from a [`ServerSpec`], in a process of its own where the tool's binary is at hand (so that it can
//! be stopped by a signal, and its CPU time is not the generator's), else in this one.

mod note;
mod phases;
mod process;
mod scripted;
mod zero;

use std::io;
use std::net::SocketAddr;

use plimsoll_mock::{LogRecord, Mock, MockConfig};
use serde::{Deserialize, Serialize};

pub(crate) use phases::{Exchanged, PhasesSpec};
pub(crate) use process::{Process, send, serve};
pub(crate) use scripted::{Script, Step};
pub(crate) use zero::{Pause, Received, ZeroSpec};

use crate::error::CalibrateError;

/// What a reference server shall do.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ServerSpec {
    /// The mock provider, by its configuration.
    Mock(Box<MockConfig>),
    /// Answers at once, and notes when the kernel received each request.
    Zero(ZeroSpec),
    /// Plays a scripted stream, byte by byte.
    Scripted(Script),
    /// Takes its time for the TLS handshake, and closes connections after a number of requests.
    Phases(PhasesSpec),
}

/// What a reference server did.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Truth {
    /// Of the mock.
    pub(crate) requests: Vec<LogRecord>,
    /// Of the zero server.
    pub(crate) received: Vec<Received>,
    /// Of the server with phases.
    pub(crate) exchanged: Exchanged,
}

/// A reference server in this process.
#[derive(Debug)]
pub(crate) enum Running {
    Mock(Mock),
    Zero(zero::Zero),
    Scripted(scripted::Scripted),
    Phases(phases::Phases),
}

impl ServerSpec {
    /// Starts it on a free port of the loopback interface.
    pub(crate) fn start(self) -> Result<Running, CalibrateError> {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        Ok(match self {
            Self::Mock(config) => Running::Mock(Mock::spawn(&config, any)?),
            Self::Zero(spec) => {
                Running::Zero(zero::Zero::start(any, spec).map_err(CalibrateError::Server)?)
            }
            Self::Scripted(script) => Running::Scripted(
                scripted::Scripted::start(any, script).map_err(CalibrateError::Server)?,
            ),
            Self::Phases(spec) => {
                Running::Phases(phases::Phases::start(any, spec).map_err(CalibrateError::Server)?)
            }
        })
    }
}

impl Running {
    /// Where it listens.
    pub(crate) const fn addr(&self) -> SocketAddr {
        match self {
            Self::Mock(mock) => mock.addr(),
            Self::Zero(zero) => zero.addr(),
            Self::Scripted(scripted) => scripted.addr(),
            Self::Phases(phases) => phases.addr(),
        }
    }

    /// Ends it, and tells what it did.
    pub(crate) fn finish(self) -> Truth {
        match self {
            Self::Mock(mut mock) => {
                mock.shutdown();
                Truth { requests: mock.take_log(), ..Truth::default() }
            }
            Self::Zero(zero) => Truth { received: zero.finish(), ..Truth::default() },
            Self::Scripted(_) => Truth::default(),
            Self::Phases(phases) => Truth { exchanged: phases.finish(), ..Truth::default() },
        }
    }
}

/// A server that a test uses.
#[derive(Debug)]
pub(crate) enum Server {
    /// In this process.
    Here(Running),
    /// In a process of its own.
    Process(Process),
}

impl Server {
    /// Where it listens.
    pub(crate) const fn addr(&self) -> SocketAddr {
        match self {
            Self::Here(running) => running.addr(),
            Self::Process(process) => process.addr(),
        }
    }

    /// Its URL.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.addr())
    }

    /// The process that can be stopped, if it has one of its own.
    pub(crate) const fn process(&self) -> Option<&Process> {
        match self {
            Self::Here(_) => None,
            Self::Process(process) => Some(process),
        }
    }

    /// Ends it, and tells what it did.
    pub(crate) fn finish(self) -> Result<Truth, CalibrateError> {
        match self {
            Self::Here(running) => Ok(running.finish()),
            Self::Process(process) => process.finish(),
        }
    }
}

/// Starts a named thread.
fn thread<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<std::thread::JoinHandle<T>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(body)
}
