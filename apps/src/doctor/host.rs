//! What concerns the whole machine.

use std::net::IpAddr;

use uroce_nic::host::Interface;
use uroce_nic::probe::{self, Privileges};

use super::finding::Finding;
use crate::error::{Context, Result};

/// First kernel with AF_XDP that this works with: links of XDP programs.
const OLDEST: (u32, u32) = (5, 9);
/// First kernel that gives AF_XDP frames in several buffers.
const SEVERAL_BUFFERS: (u32, u32) = (6, 6);
/// Bytes of the frames of one queue.
const LOCKED: u64 = 6 << 20;

/// All of it.
pub(super) fn examine() -> Vec<Finding> {
    let unknown =
        |check| move |error: std::io::Error| Finding::limit(check, error.to_string(), "mount /proc");
    vec![
        probe::kernel_version()
            .map_or_else(unknown("kernel"), |(major, minor, text)| kernel((major, minor), &text)),
        probe::privileges().map_or_else(unknown("privileges"), privileges),
        probe::port_4791_in_use().map_or_else(unknown("port 4791"), |holders| port(&holders)),
        rxe(probe::rdma_rxe_loaded()),
    ]
}

/// The Ethernet interfaces that are up.
pub(super) fn interfaces_up() -> Result<Vec<Interface>> {
    let list = std::fs::read_to_string("/proc/net/dev").context("cannot list the network interfaces")?;
    let names = list.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim());
    // Those that are not Ethernet, such as the loopback interface, are not found.
    Ok(names.filter_map(|name| Interface::find(name).ok()).filter(|interface| interface.up).collect())
}

fn kernel(version: (u32, u32), release: &str) -> Finding {
    if version < OLDEST {
        let remedy = "use Linux 6.6 or later, or `--backend packet`";
        return Finding::fails("kernel", format!("{release} has no links for XDP programs"), remedy);
    }
    if version < SEVERAL_BUFFERS {
        let found = format!("{release} gives AF_XDP no frames in several buffers, so path MTU ends at 2048");
        return Finding::limit("kernel", found, "use Linux 6.6 or later for 4096");
    }
    Finding::fine("kernel", format!("{release} has AF_XDP, also for frames in several buffers"))
}

fn privileges(held: Privileges) -> Finding {
    let wanted = [("CAP_NET_ADMIN", held.net_admin), ("CAP_NET_RAW", held.net_raw), ("CAP_BPF", held.bpf)];
    let missing: Vec<&str> = wanted.into_iter().filter(|(_, held)| !held).map(|(name, _)| name).collect();
    if !missing.is_empty() {
        let remedy =
            "run with sudo, or `setcap cap_net_admin,cap_net_raw,cap_bpf,cap_ipc_lock+ep` the program";
        return Finding::fails("privileges", format!("without {}", missing.join(", ")), remedy);
    }
    match held.memlock {
        Some(bytes) if bytes < LOCKED && !held.ipc_lock => Finding::limit(
            "privileges",
            format!(
                "{} KiB of memory may be locked, the frames of one queue take {} KiB",
                bytes >> 10,
                LOCKED >> 10
            ),
            "`ulimit -l unlimited`, or CAP_IPC_LOCK",
        ),
        _ => Finding::fine("privileges", "all that AF_XDP takes"),
    }
}

fn port(holders: &[IpAddr]) -> Finding {
    if holders.is_empty() {
        return Finding::fine("port 4791", "no socket holds it");
    }
    let holders: Vec<String> = holders.iter().map(IpAddr::to_string).collect();
    Finding::limit(
        "port 4791",
        format!("held on {}: AF_XDP takes its packets away, AF_PACKET cannot start", holders.join(", ")),
        "`ss -ulpn sport = 4791` tells by whom; rdma_rxe holds it while it has a device",
    )
}

fn rxe(loaded: bool) -> Finding {
    if !loaded {
        return Finding::fine("rdma_rxe", "not loaded");
    }
    let found = "loaded: on an interface that it uses, uroce takes its packets away";
    Finding::limit(
        "rdma_rxe",
        found,
        "use another interface than `rdma link` lists, or `rdma link delete` that one",
    )
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    const ROOT: Privileges =
        Privileges { net_admin: true, net_raw: true, bpf: true, ipc_lock: true, memlock: Some(0) };

    #[test]
    fn kernels() {
        let verdicts = [(6, 18), (6, 6), (6, 1), (4, 19)].map(|version| kernel(version, "x").verdict);
        assert_eq!(verdicts, [Verdict::Fine, Verdict::Fine, Verdict::Limit, Verdict::Fails]);
    }

    #[test]
    fn capabilities_that_are_missing_are_named() {
        assert_eq!(privileges(ROOT).verdict, Verdict::Fine);
        let some = privileges(Privileges { net_raw: false, bpf: false, ..ROOT });
        assert_eq!((some.verdict, some.found.as_str()), (Verdict::Fails, "without CAP_NET_RAW, CAP_BPF"));
        assert_eq!(privileges(Privileges { ipc_lock: false, ..ROOT }).verdict, Verdict::Limit);
    }

    #[test]
    fn holders_of_the_port_are_named() {
        assert_eq!(port(&[]).verdict, Verdict::Fine);
        let held = port(&["0.0.0.0".parse().unwrap(), "::".parse().unwrap()]);
        assert!(held.verdict == Verdict::Limit && held.found.starts_with("held on 0.0.0.0, ::"), "{held:?}");
    }
}
