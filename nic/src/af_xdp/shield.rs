//! Keeps from the kernel's network stack what a packet socket has seen already.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::{bpf, steer};

/// While it lives, packets of RoCEv2 that an interface receives end behind its packet sockets (Linux 6.6). The kernel
/// would only route each of them to a socket that refuses it.
#[derive(Debug)]
pub(crate) struct Shield {
    link: OwnedFd,
}

impl Shield {
    /// Protects the stack from the packets of `interface`, given by its index.
    ///
    /// # Errors
    /// The kernel is older, or privileges are lacking (`CAP_NET_ADMIN` and `CAP_BPF`).
    pub(crate) fn raise(interface: u32) -> io::Result<Self> {
        let program = bpf::load_traffic_program(&steer::assemble_drop())?;
        Ok(Self { link: bpf::attach_to_ingress(program.as_fd(), interface)? })
    }
}

impl Drop for Shield {
    fn drop(&mut self) {
        // Closing the link would do, but for a child process that inherited it by a fork. Fails only when the interface
        // is gone.
        let _ = bpf::detach(self.link.as_fd());
    }
}
