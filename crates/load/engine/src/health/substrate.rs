//! Environment of a server on this host: container or not, number of CPUs, CPU quota.

use super::cgroup::{self, CpuGroups};
use super::listener::{ListenerError, listener};
use super::process::allowed_cpus;

/// Describes the environment of the server on a port of this host: `as a process of this host, on 2
/// CPUs`. `None` if its process is not visible.
pub fn substrate(port: u16) -> Option<String> {
    match listener(port) {
        Ok(pid) => Some(of_process(pid)),
        Err(ListenerError::Forwarder { name, .. }) => {
            Some(format!("in a container, with its port forwarded by {name}"))
        }
        Err(_) => None,
    }
}

fn of_process(pid: u32) -> String {
    let place = if cgroup::container_of(pid).is_empty() {
        "as a process of this host"
    } else {
        "in a container"
    };
    let cpus = allowed_cpus([pid].into_iter()).map_or_else(String::new, |count: u32| {
        format!(", on {count} CPU{}", if count == 1 { "" } else { "s" })
    });
    let quota = CpuGroups::read(pid).narrowest().map(|(cpus, _)| cpus);
    let quota =
        quota.map_or_else(String::new, |cpus: f64| format!(", with a quota of {cpus} CPUs"));
    format!("{place}{cpus}{quota}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_listener_of_this_process_runs_on_what_this_process_runs_on() {
        let own = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = own.local_addr().unwrap().port();
        let cpus = nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0)).unwrap();
        let count = (0..nix::sched::CpuSet::count()).filter(|cpu| cpus.is_set(*cpu).unwrap());
        let shown = substrate(port).unwrap();
        let expected = format!("as a process of this host, on {} CPU", count.count());
        assert!(shown.starts_with(&expected), "{shown}");
        drop(own);
        assert_eq!(substrate(port), None, "nothing listens");
    }
}
