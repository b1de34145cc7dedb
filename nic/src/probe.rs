//! What this host can do, for a person who asks why something does not work.
//!
//! Everything here only looks, but for [`xdp`], which tries and undoes.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::{OpenError, ROCE_PORT};

/// What an interface offers to AF_XDP.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct XdpSupport {
    /// The driver takes an XDP program.
    pub native: bool,
    /// The generic path takes an XDP program.
    pub generic: bool,
    /// The driver can use our buffers without a copy.
    pub zero_copy: bool,
    /// Frames longer than one buffer are carried, as path MTU 4096 needs.
    pub multi_buffer: bool,
    /// For each of these that is missing, a sentence about why.
    pub reasons: Vec<String>,
}

/// The privileges of the calling thread that matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Privileges {
    /// `CAP_NET_ADMIN`: to attach an XDP program.
    pub net_admin: bool,
    /// `CAP_NET_RAW`: to open AF_XDP and AF_PACKET sockets.
    pub net_raw: bool,
    /// `CAP_BPF` (or `CAP_SYS_ADMIN`): to load a BPF program.
    pub bpf: bool,
    /// `CAP_IPC_LOCK`: not bound by the limit on locked memory.
    pub ipc_lock: bool,
    /// Bytes of memory that may be locked; `None` when unlimited.
    pub memlock: Option<u64>,
}

/// The release of the running kernel: its major and minor number, and the whole text.
///
/// # Errors
/// `/proc` is not mounted.
pub fn kernel_version() -> io::Result<(u32, u32, String)> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let release = release.trim();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().unwrap_or(0));
    Ok((numbers.next().unwrap_or(0), numbers.next().unwrap_or(0), release.to_owned()))
}

/// Whether the kernel takes apart frames that hold several datagrams, as it does since Linux 6.2: then the AF_PACKET
/// backend sends up to 64 KiB at once.
pub fn segmentation_offload() -> bool {
    kernel_version().is_ok_and(|(major, minor, _)| (major, minor) >= (6, 2))
}

/// Tries out on queue 0 of `interface` what XDP offers there, and undoes it.
///
/// # Errors
/// The interface is missing, down or in use by another XDP program, or privileges are lacking.
#[cfg(feature = "af-xdp")]
pub fn xdp(interface: &str) -> Result<XdpSupport, OpenError> {
    use crate::XdpAttach::{Generic, Native};
    let mut support = XdpSupport::default();
    let reasons = &mut support.reasons;
    let native = try_attach(interface, Native, reasons)?;
    let generic = try_attach(interface, Generic, reasons)?;
    (support.native, support.generic) = (native.is_some(), generic.is_some());
    let Some(fragments) = native.or(generic) else { return Ok(support) };
    support.zero_copy = try_flag(interface, crate::af_xdp::BindFlags::XDP_ZEROCOPY, "zero-copy", reasons)?;
    let several = crate::af_xdp::BindFlags::XDP_USE_SG | crate::af_xdp::BindFlags::XDP_COPY;
    support.multi_buffer = fragments && try_flag(interface, several, "multi-buffer", reasons)?;
    if !support.multi_buffer {
        reasons.push(
            "multi-buffer needs kernel 6.6 or later; without it path MTU 2048 is what is left".to_owned(),
        );
    }
    Ok(support)
}

/// Whether a program that runs there sees frames in several buffers; `None` when it does not run there.
#[cfg(feature = "af-xdp")]
fn try_attach(
    interface: &str,
    attach: crate::XdpAttach,
    reasons: &mut Vec<String>,
) -> Result<Option<bool>, OpenError> {
    match crate::XdpProgram::attach(interface, Some(attach)) {
        Ok(program) => Ok(Some(program.takes_fragments())),
        Err(error @ OpenError::NoXdp { .. }) => {
            reasons.push(format!("{attach}: {error}"));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

#[cfg(feature = "af-xdp")]
fn try_flag(
    interface: &str,
    flag: crate::af_xdp::BindFlags,
    what: &str,
    reasons: &mut Vec<String>,
) -> Result<bool, OpenError> {
    let interface = crate::host::Interface::find(interface)?;
    let tried = crate::af_xdp::try_bind(&interface, flag);
    if let Err(error) = &tried {
        let driver = interface.driver.as_deref().unwrap_or("unknown");
        reasons.push(format!("{what}: the kernel or the driver ({driver}) does not offer it: {error}"));
    }
    Ok(tried.is_ok())
}

/// Tells that this build has no AF_XDP.
///
/// # Errors
/// None in this build.
#[cfg(not(feature = "af-xdp"))]
pub fn xdp(_interface: &str) -> Result<XdpSupport, OpenError> {
    let reasons = vec!["this program was built without AF_XDP (feature `af-xdp`)".to_owned()];
    Ok(XdpSupport { reasons, ..XdpSupport::default() })
}

/// What the calling thread may do.
///
/// # Errors
/// `/proc` is not mounted.
pub fn privileges() -> io::Result<Privileges> {
    let status = fs::read_to_string("/proc/thread-self/status")?;
    let limits = fs::read_to_string("/proc/thread-self/limits")?;
    let effective = effective_capabilities(&status);
    let has = |bit: u32| effective & 1 << bit != 0;
    const NET_ADMIN: u32 = 12;
    const NET_RAW: u32 = 13;
    const IPC_LOCK: u32 = 14;
    const SYS_ADMIN: u32 = 21;
    const BPF: u32 = 39;
    Ok(Privileges {
        net_admin: has(NET_ADMIN),
        net_raw: has(NET_RAW),
        bpf: has(BPF) || has(SYS_ADMIN),
        ipc_lock: has(IPC_LOCK),
        memlock: locked_memory(&limits),
    })
}

/// The addresses of which some UDP socket of this network namespace holds port 4791.
///
/// # Errors
/// `/proc` is not mounted.
pub fn port_4791_in_use() -> io::Result<Vec<IpAddr>> {
    let v4 = fs::read_to_string("/proc/thread-self/net/udp")?;
    // A kernel without IPv6 has no such file.
    let v6 = fs::read_to_string("/proc/thread-self/net/udp6").unwrap_or_default();
    Ok(v4.lines().chain(v6.lines()).filter_map(holder_of_port).collect())
}

/// Whether the kernel's own software RoCE is there: it takes port 4791 of every address once a device is made of it.
pub fn rdma_rxe_loaded() -> bool {
    let module = fs::read_to_string("/proc/modules").is_ok_and(|modules| has_module(&modules, "rdma_rxe"));
    let device = fs::read_dir("/sys/class/infiniband").is_ok_and(|mut devices| {
        devices
            .any(|device| device.is_ok_and(|device| device.file_name().to_string_lossy().starts_with("rxe")))
    });
    module || device
}

fn has_module(modules: &str, name: &str) -> bool {
    modules.lines().any(|line| line.split(' ').next() == Some(name))
}

fn effective_capabilities(status: &str) -> u64 {
    let value = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    value.and_then(|value| u64::from_str_radix(value.trim(), 16).ok()).unwrap_or(0)
}

fn locked_memory(limits: &str) -> Option<u64> {
    let value = limits.lines().find_map(|line| line.strip_prefix("Max locked memory"))?;
    value.split_whitespace().next()?.parse().ok()
}

/// The local address of a line of `/proc/net/udp` whose local port is ours.
fn holder_of_port(line: &str) -> Option<IpAddr> {
    let (address, port) = line.split_whitespace().nth(1)?.split_once(':')?;
    if u16::from_str_radix(port, 16) != Ok(ROCE_PORT) {
        return None;
    }
    // Words of 32 bits, each printed as a number of the machine's byte order.
    let words: Vec<[u8; 4]> = (0..address.len() / 8)
        .map_while(|word| {
            u32::from_str_radix(&address[8 * word..8 * word + 8], 16).ok().map(u32::to_ne_bytes)
        })
        .collect();
    match words.as_slice() {
        [word] => Some(Ipv4Addr::from(*word).into()),
        [_, _, _, _] => Some(Ipv6Addr::from(<[u8; 16]>::try_from(words.concat()).ok()?).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_kernel_has_a_version() {
        let (major, _, text) = kernel_version().unwrap();
        assert!(major >= 4 && text.starts_with(&major.to_string()));
    }

    #[test]
    fn capabilities_and_limits_are_read() {
        assert_eq!(effective_capabilities("Name:\tx\nCapEff:\t0000000000003000\nCapBnd:\t0\n"), 0x3000);
        let line = "Max locked memory         8388608              8388608              bytes\n";
        assert_eq!(locked_memory(line), Some(8_388_608));
        assert_eq!(
            locked_memory("Max locked memory         unlimited            unlimited            bytes"),
            None
        );
        privileges().unwrap();
    }

    #[test]
    fn holders_of_the_port_are_found() {
        let line = "  12: 0100000A:12B7 00000000:0000 07 00000000:00000000 00:00000000 00000000";
        let expected = if cfg!(target_endian = "little") { "10.0.0.1" } else { "1.0.0.10" };
        assert_eq!(holder_of_port(line), Some(expected.parse().unwrap()));
        let v6 = " 3: 000080FE00000000FF00545201000000:12B7 0:0 07";
        if cfg!(target_endian = "little") {
            assert_eq!(holder_of_port(v6), Some("fe80::5254:ff:0:1".parse().unwrap()));
        }
        assert_eq!(holder_of_port("  12: 0100000A:0035 00000000:0000 07"), None);
        assert_eq!(holder_of_port("  sl  local_address rem_address   st"), None);
    }

    #[test]
    fn a_module_is_known_by_its_whole_name() {
        assert!(has_module("rdma_rxe 196608 0 - Live 0x0\nib_core 1 1\n", "rdma_rxe"));
        assert!(!has_module("rdma_rxe_x 1 0\nib_core 1 1 rdma_rxe,\n", "rdma_rxe"));
    }
}
