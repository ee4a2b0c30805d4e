//! Reference servers: they record the truth, and share no code with the client.
//!
//! Each is started from a [`ServerSpec`]: in a separate process if the tool's binary is known (then
//! it can be suspended by a signal, and its CPU time is not the generator's), else in this one.

mod null_server;
mod phased_server;
mod rx_timestamp;
mod scripted_server;
mod server_process;
mod threads;

use std::net::SocketAddr;

use plimsoll_mock::{LogRecord, Mock, MockConfig};
use serde::{Deserialize, Serialize};

pub(crate) use null_server::{NullSpec, Pause, ReceivedRequest};
pub(crate) use phased_server::{PhasedLog, PhasedSpec};
pub(crate) use scripted_server::{Script, Step};
pub(crate) use server_process::{ServerProcess, serve};

use crate::error::CalibrateError;

/// Behaviour of a reference server.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ServerSpec {
    /// The mock provider, by its configuration.
    Mock(Box<MockConfig>),
    /// Answers at once, and notes when the kernel received each request.
    Null(NullSpec),
    /// Plays a scripted stream, write by write.
    Scripted(Script),
    /// Takes its time for the TLS handshake, and closes connections after a number of requests.
    Phased(PhasedSpec),
}

/// The records of a reference server.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct GroundTruth {
    /// Of the mock.
    pub(crate) requests: Vec<LogRecord>,
    /// Of the null server.
    pub(crate) received: Vec<ReceivedRequest>,
    /// Of the phased server.
    pub(crate) phased: PhasedLog,
}

/// A reference server in this process.
#[derive(Debug)]
pub(crate) enum RunningServer {
    Mock(Mock),
    Null(null_server::NullServer),
    Scripted(scripted_server::ScriptedServer),
    Phased(phased_server::PhasedServer),
}

impl ServerSpec {
    /// Starts it on a free port of the loopback interface.
    pub(crate) fn start(self) -> Result<RunningServer, CalibrateError> {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        Ok(match self {
            Self::Mock(config) => RunningServer::Mock(Mock::spawn(&config, any)?),
            Self::Null(spec) => RunningServer::Null(
                null_server::NullServer::start(any, spec).map_err(CalibrateError::Server)?,
            ),
            Self::Scripted(script) => RunningServer::Scripted(
                scripted_server::ScriptedServer::start(any, script)
                    .map_err(CalibrateError::Server)?,
            ),
            Self::Phased(spec) => RunningServer::Phased(
                phased_server::PhasedServer::start(any, spec).map_err(CalibrateError::Server)?,
            ),
        })
    }
}

impl RunningServer {
    /// Where it listens.
    pub(crate) const fn addr(&self) -> SocketAddr {
        match self {
            Self::Mock(server) => server.addr(),
            Self::Null(server) => server.addr(),
            Self::Scripted(server) => server.addr(),
            Self::Phased(server) => server.addr(),
        }
    }

    /// Ends it, and returns its records.
    pub(crate) fn finish(self) -> GroundTruth {
        match self {
            Self::Mock(mut mock) => {
                mock.shutdown();
                GroundTruth { requests: mock.take_log(), ..GroundTruth::default() }
            }
            Self::Null(server) => {
                GroundTruth { received: server.finish(), ..GroundTruth::default() }
            }
            Self::Scripted(_) => GroundTruth::default(),
            Self::Phased(server) => {
                GroundTruth { phased: server.finish(), ..GroundTruth::default() }
            }
        }
    }
}

/// A reference server of an experiment.
#[derive(Debug)]
pub(crate) enum Server {
    /// In this process.
    InProcess(RunningServer),
    /// In a separate process.
    Separate(ServerProcess),
}

impl Server {
    /// Where it listens.
    pub(crate) const fn addr(&self) -> SocketAddr {
        match self {
            Self::InProcess(server) => server.addr(),
            Self::Separate(process) => process.addr(),
        }
    }

    /// Its URL.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.addr())
    }

    /// Its process, which can be suspended; `None` in this process.
    pub(crate) const fn process(&self) -> Option<&ServerProcess> {
        match self {
            Self::InProcess(_) => None,
            Self::Separate(process) => Some(process),
        }
    }

    /// Ends it, and returns its records.
    pub(crate) fn finish(self) -> Result<GroundTruth, CalibrateError> {
        match self {
            Self::InProcess(server) => Ok(server.finish()),
            Self::Separate(process) => process.finish(),
        }
    }
}
