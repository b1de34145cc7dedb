//! What concerns the whole machine.

use std::path::Path;

use uroce_nic::ROCE_PORT;
use uroce_nic::host::Interface;

use super::finding::Finding;
use crate::error::{Context, Result};

/// First kernel with AF_XDP that this works with: links of XDP programs.
const OLDEST: (u32, u32) = (5, 9);
/// First kernel that gives AF_XDP frames in several buffers.
const SEVERAL_BUFFERS: (u32, u32) = (6, 6);
/// The capabilities that AF_XDP takes, with their numbers.
const CAPABILITIES: [(&str, u32); 3] = [("CAP_NET_ADMIN", 12), ("CAP_NET_RAW", 13), ("CAP_BPF", 39)];
/// Implies CAP_BPF, which kernels before 5.8 do not know.
const SYS_ADMIN: u32 = 21;

/// All of it.
pub(super) fn examine() -> Vec<Finding> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    vec![
        kernel(read("/proc/sys/kernel/osrelease").trim()),
        privileges(&read("/proc/self/status")),
        port(&(read("/proc/net/udp") + &read("/proc/net/udp6"))),
        rxe(Path::new("/sys/module/rdma_rxe").exists()),
    ]
}

/// The Ethernet interfaces that are up.
pub(super) fn interfaces_up() -> Result<Vec<Interface>> {
    let list = std::fs::read_to_string("/proc/net/dev").context("cannot list the network interfaces")?;
    let names = list.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim());
    // Those that are not Ethernet, such as the loopback interface, are not found.
    Ok(names.filter_map(|name| Interface::find(name).ok()).filter(|interface| interface.up).collect())
}

fn kernel(release: &str) -> Finding {
    match version(release) {
        None => Finding::limit("kernel", format!("its version {release:?} is not understood"), "use Linux 6.6 or later"),
        Some(found) if found < OLDEST => {
            let remedy = "use Linux 6.6 or later, or `--backend packet`";
            Finding::fails("kernel", format!("{release} has no links for XDP programs"), remedy)
        }
        Some(found) if found < SEVERAL_BUFFERS => Finding::limit(
            "kernel",
            format!("{release} gives AF_XDP no frames in several buffers, so path MTU ends at 2048"),
            "use Linux 6.6 or later for 4096",
        ),
        Some(_) => Finding::fine("kernel", format!("{release}, with AF_XDP frames in several buffers")),
    }
}

fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn privileges(status: &str) -> Finding {
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    let holds = |number: u32| effective >> number & 1 == 1;
    let missing: Vec<&str> = CAPABILITIES
        .into_iter()
        .filter(|&(name, number)| !holds(number) && !(name == "CAP_BPF" && holds(SYS_ADMIN)))
        .map(|(name, _)| name)
        .collect();
    if missing.is_empty() {
        return Finding::fine("privileges", "all that AF_XDP takes");
    }
    let remedy = "run with sudo, or `setcap cap_net_admin,cap_net_raw,cap_bpf,cap_ipc_lock+ep` the program";
    Finding::fails("privileges", format!("without {}", missing.join(", ")), remedy)
}

/// `tables` are the kernel's lists of UDP sockets.
fn port(tables: &str) -> Finding {
    let number = format!(":{ROCE_PORT:04X}");
    let local = tables.lines().filter_map(|line| line.split_whitespace().nth(1));
    let users = local.filter(|address| address.ends_with(&number)).count();
    if users == 0 {
        return Finding::fine("port 4791", "no socket holds it");
    }
    Finding::limit(
        "port 4791",
        format!("{users} UDP sockets hold it; AF_XDP takes their packets, AF_PACKET cannot start"),
        "`ss -ulpn sport = 4791` tells who; rdma_rxe holds it while it is loaded",
    )
}

fn rxe(loaded: bool) -> Finding {
    if !loaded {
        return Finding::fine("rdma_rxe", "not loaded");
    }
    let remedy = "use another interface than `rdma link` lists, or `rdma link delete` it";
    Finding::limit("rdma_rxe", "loaded: on the same interface its peers cannot reach it while uroce runs", remedy)
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    #[test]
    fn kernels() {
        let verdict = |release| kernel(release).verdict;
        assert_eq!(verdict("6.18.44-x"), Verdict::Fine);
        assert_eq!(verdict("6.6"), Verdict::Fine);
        assert_eq!(verdict("6.1.0-18-amd64"), Verdict::Limit);
        assert_eq!(verdict("4.19.0"), Verdict::Fails);
        assert_eq!(verdict("unheard of"), Verdict::Limit);
    }

    #[test]
    fn capabilities() {
        assert_eq!(privileges("Name:\tx\nCapEff:\t000001ffffffffff\n").verdict, Verdict::Fine);
        let none = privileges("CapEff:\t0000000000000000\n");
        assert_eq!((none.verdict, none.found.as_str()), (Verdict::Fails, "without CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF"));
        let old_root = (1u64 << 12) | (1 << 13) | (1 << 21);
        assert_eq!(privileges(&format!("CapEff:\t{old_root:016x}")).verdict, Verdict::Fine);
    }

    #[test]
    fn the_port_is_found_in_both_families() {
        let header = "  sl  local_address rem_address   st\n";
        let v4 = "  12: 00000000:12B7 00000000:0000 07\n";
        let v6 = "  12: 00000000000000000000000000000000:12B7 00000000000000000000000000000000:0000 07\n";
        let other = "  12: 00000000:0035 00000000:12B7 07\n";
        assert_eq!(port(&format!("{header}{other}")).verdict, Verdict::Fine);
        let both = port(&format!("{header}{v4}{header}{v6}"));
        assert!(both.verdict == Verdict::Limit && both.found.starts_with("2 UDP sockets"), "{both:?}");
    }
}
