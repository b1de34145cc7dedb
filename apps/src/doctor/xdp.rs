//! What AF_XDP can do on one interface: found out by attaching for a moment.

use uroce_nic::host::Interface;

use super::finding::Finding;

/// How frames would come and go.
#[cfg(not(feature = "af-xdp"))]
pub(super) fn examine(_interface: &Interface) -> Vec<Finding> {
    let remedy = "build it with the feature af-xdp; until then it falls back to AF_PACKET";
    vec![Finding::limit("XDP", "this uroce was built without AF_XDP", remedy)]
}

/// How frames would come and go.
#[cfg(feature = "af-xdp")]
pub(super) fn examine(interface: &Interface) -> Vec<Finding> {
    use uroce_nic::{AfXdp, Mode, Nic, XdpConfig};

    match AfXdp::open(&interface.name, 0, &XdpConfig::default()) {
        Err(error) => vec![refused(&error)],
        Ok(socket) => match socket.mode() {
            Mode::AfXdp { attach, zero_copy, multi_buffer } => {
                vec![mode(attach, zero_copy), buffers(interface, multi_buffer)]
            }
            other => vec![Finding::fine("XDP", other.to_string())],
        },
    }
}

#[cfg(feature = "af-xdp")]
fn refused(error: &uroce_nic::OpenError) -> Finding {
    use uroce_nic::OpenError;

    let remedy = match error {
        OpenError::ProgramPresent { .. } | OpenError::QueueBusy { .. } => "wait until it has ended, or end it",
        OpenError::NotPermitted { .. } => "`sudo uroce doctor` to find out what the driver can do",
        _ => "`--backend packet` works without AF_XDP, more slowly",
    };
    Finding::fails("XDP", error.to_string(), remedy)
}

#[cfg(feature = "af-xdp")]
fn mode(attach: uroce_nic::XdpAttach, zero_copy: bool) -> Finding {
    use uroce_nic::XdpAttach;

    match (attach, zero_copy) {
        (XdpAttach::Native, true) => Finding::fine("XDP", "native, zero-copy"),
        (XdpAttach::Native, false) => {
            let remedy = "a driver with AF_XDP zero-copy, if more speed is wanted";
            Finding::limit("XDP", "native, but the driver copies each frame", remedy)
        }
        (XdpAttach::Generic, _) => {
            let remedy = "a driver with native XDP, or a smaller MTU if the driver has a limit for it";
            Finding::limit("XDP", "generic: the driver takes no XDP program, so frames pass the kernel first", remedy)
        }
    }
}

#[cfg(feature = "af-xdp")]
fn buffers(interface: &Interface, multi_buffer: bool) -> Finding {
    if multi_buffer {
        return Finding::fine("multi-buffer", format!("frames of MTU {} come whole", interface.mtu));
    }
    let remedy = "Linux 6.6 or later and a driver that passes frames in several buffers";
    Finding::limit("multi-buffer", "frames end at 3840 bytes, which leaves path MTU 2048", remedy)
}
