//! What only the older ioctl interface tells of an interface.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::sys;

const ETHTOOL_GDRVINFO: u32 = 0x3;
const ETHTOOL_GCHANNELS: u32 = 0x3c;

/// `struct ethtool_drvinfo` of the kernel's ABI.
#[repr(C)]
struct DriverInfo {
    command: u32,
    driver: [u8; 32],
    rest: [u8; 160],
}

/// `struct ethtool_channels` of the kernel's ABI.
#[repr(C)]
#[derive(Default)]
struct Channels {
    command: u32,
    max: [u32; 4],
    rx: u32,
    tx: u32,
    other: u32,
    combined: u32,
}

/// Name of the driver behind an interface.
pub(super) fn driver(name: &str) -> Option<String> {
    let mut info = DriverInfo { command: ETHTOOL_GDRVINFO, driver: [0; 32], rest: [0; 160] };
    call(name, &mut info).ok()?;
    let end = info.driver.iter().position(|&byte| byte == 0)?;
    String::from_utf8(info.driver[..end].to_vec()).ok().filter(|driver| !driver.is_empty())
}

/// Receive queues in use; `None` when the driver does not tell.
pub(super) fn rx_queues(name: &str) -> Option<u32> {
    let mut channels = Channels { command: ETHTOOL_GCHANNELS, ..Channels::default() };
    call(name, &mut channels).ok()?;
    Some(channels.rx + channels.combined).filter(|&queues| queues > 0)
}

fn call<T>(name: &str, data: &mut T) -> io::Result<()> {
    let socket: OwnedFd = sys::socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    let mut request = libc::ifreq {
        ifr_name: interface_name(name)?,
        ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_data: std::ptr::from_mut(data).cast() },
    };
    // SAFETY: the request and the structure it points to outlive the call. The structures of this module are those
    // of the kernel's ABI for the command they start with, so the kernel writes within them.
    sys::check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &mut request) })?;
    Ok(())
}

fn interface_name(name: &str) -> io::Result<[libc::c_char; libc::IFNAMSIZ]> {
    if name.len() >= libc::IFNAMSIZ {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut bytes = [0; libc::IFNAMSIZ];
    for (to, from) in bytes.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(bytes)
}
