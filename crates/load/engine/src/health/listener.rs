//! Finds the process that listens on a port of this host, from `/proc`.

use std::collections::{BTreeMap, BTreeSet};

use procfs::net::{TcpNetEntry, TcpState};
use procfs::process::{FDTarget, Process};

use super::kernel::{process, processes, sockets};
use super::process_tree::ProcessStat;

/// Why no process was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListenerError {
    /// No process listens. Remedy: start the server first, or correct the port.
    #[error("nothing listens on port {0} of this host; start the server first")]
    None(u16),
    /// Something listens, but its process cannot be seen. Remedy: run as its user, or give its id.
    #[error(
        "the process that listens on port {0} is not visible to this user (it belongs to another user, or runs in another container); run as that user or as root, or write NAME=PID"
    )]
    NotVisible(u16),
    /// A process that only passes connections on into a container listens. Remedy: watch the one in
    /// the container.
    #[error(
        "{name} listens on port {port} and passes connections on into a container; write NAME=PID with the id of the server itself, as `docker inspect -f '{{{{.State.Pid}}}}' CONTAINER` prints it"
    )]
    Forwarder {
        /// The port.
        port: u16,
        /// The name of the process.
        name: String,
    },
    /// Several processes listen that do not descend from each other. Remedy: choose one.
    #[error(
        "several processes listen on port {port} ({}); write NAME=PID with the id of one, or of their common parent",
        list(pids)
    )]
    Several {
        /// The port.
        port: u16,
        /// Their ids.
        pids: Vec<u32>,
    },
}

fn list(pids: &[u32]) -> String {
    pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

/// The process that listens on a TCP port of this host, whatever the address. If workers inherited
/// the socket of a master, this is the master.
///
/// # Errors
/// None listens, it is not visible, or there are several.
pub fn listener(port: u16) -> Result<u32, ListenerError> {
    let listening = sockets().filter(|socket: &TcpNetEntry| {
        socket.state == TcpState::Listen && socket.local_address.port() == port
    });
    let inodes: BTreeSet<u64> = listening.map(|socket| socket.inode).collect();
    if inodes.is_empty() {
        return Err(ListenerError::None(port));
    }
    let holders: BTreeMap<u32, u32> = processes()
        .filter(|(_, process)| holds(process, &inodes))
        .filter_map(|(pid, process)| Some((pid, ProcessStat::read_of(&process)?.parent)))
        .collect();
    match topmost(&holders, |pid| ProcessStat::read(pid).map(|stat| stat.parent)).as_slice() {
        [] => Err(ListenerError::NotVisible(port)),
        [pid] => {
            forwarder(*pid).map_or(Ok(*pid), |name| Err(ListenerError::Forwarder { port, name }))
        }
        pids => Err(ListenerError::Several { port, pids: pids.to_vec() }),
    }
}

/// The TCP ports on which any of these processes listens.
pub fn ports_of(pids: impl IntoIterator<Item = u32>) -> BTreeSet<u16> {
    let listening = sockets().filter(|socket| socket.state == TcpState::Listen);
    let ports: BTreeMap<u64, u16> =
        listening.map(|socket| (socket.inode, socket.local_address.port())).collect();
    let descriptors = pids.into_iter().filter_map(process).filter_map(|own| own.fd().ok());
    let sockets = descriptors.flatten().flatten().filter_map(|fd| match fd.target {
        FDTarget::Socket(inode) => ports.get(&inode).copied(),
        _ => None,
    });
    sockets.collect()
}

/// Programs that publish ports of containers: their CPU use is not the server's.
const FORWARDERS: [&str; 5] = ["docker-proxy", "rootlessport", "slirp4netns", "pasta", "conmon"];

/// The name of a process, if it only passes connections on.
fn forwarder(pid: u32) -> Option<String> {
    let name = process(pid)?.stat().ok()?.comm;
    is_forwarder(&name).then_some(name)
}

/// The kernel cuts names at 15 characters.
fn is_forwarder(name: &str) -> bool {
    FORWARDERS.iter().any(|known| name.starts_with(known))
}

/// Whether a process holds one of these sockets. False if its descriptors may not be read.
fn holds(process: &Process, inodes: &BTreeSet<u64>) -> bool {
    let mut descriptors = process.fd().into_iter().flatten().flatten();
    descriptors.any(|fd| matches!(fd.target, FDTarget::Socket(inode) if inodes.contains(&inode)))
}

/// Those that have no ancestor among them. `holders` are processes with their parents.
fn topmost(holders: &BTreeMap<u32, u32>, parent_of: impl Fn(u32) -> Option<u32>) -> Vec<u32> {
    let descends = |pid: u32| {
        let mut ancestor = holders.get(&pid).copied();
        while let Some(pid) = ancestor.filter(|pid| *pid > 0) {
            if holders.contains_key(&pid) {
                return true;
            }
            ancestor = parent_of(pid);
        }
        false
    };
    holders.keys().copied().filter(|pid| !descends(*pid)).collect()
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn of_a_master_and_its_workers_the_master_is_found() {
        let holders = BTreeMap::from([(10, 1), (11, 10), (13, 12)]);
        assert_eq!(
            topmost(&holders, |pid| [(12, 10), (10, 1)]
                .iter()
                .find(|(p, _)| *p == pid)
                .map(|(_, p)| *p)),
            [10]
        );
        assert_eq!(topmost(&BTreeMap::from([(10, 1), (20, 1)]), |_| None), [10, 20]);
    }

    #[test]
    fn a_process_that_only_passes_on_is_not_the_server() {
        assert!(is_forwarder("docker-proxy") && !is_forwarder("nginx"));
        let error = ListenerError::Forwarder { port: 80, name: "docker-proxy".to_owned() };
        assert!(error.to_string().contains("{{.State.Pid}}"), "{error}");
    }

    #[test]
    fn this_process_is_found_by_its_port() {
        let own = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = own.local_addr().unwrap().port();
        let connected = TcpStream::connect(("127.0.0.1", port)).unwrap();
        assert_eq!(listener(port), Ok(std::process::id()));
        drop((own, connected));
        assert_eq!(listener(port), Err(ListenerError::None(port)));
        let words = ListenerError::Several { port: 80, pids: vec![7, 8] }.to_string();
        assert!(words.contains("(7, 8)"), "{words}");
    }
}
