//! The steering program on an interface.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::steer::Verdict;
use super::{bpf, steer};
use crate::host::Interface;
use crate::{OpenError, XdpAttach};

/// Every attachment of this process, for [`detach_all`].
static ATTACHED: Mutex<Vec<Weak<Attachment>>> = Mutex::new(Vec::new());

/// The steering program, attached to an interface until the last clone and the last socket of it are dropped.
#[derive(Clone, Debug)]
pub struct XdpProgram {
    attachment: Arc<Attachment>,
}

#[derive(Debug)]
struct Attachment {
    interface: Interface,
    attach: XdpAttach,
    /// Whether frames in several buffers reach us.
    fragments: bool,
    sockets: OwnedFd,
    link: OwnedFd,
}

impl XdpProgram {
    /// Attaches the program to `interface`, in the driver if it can, else in the generic path.
    ///
    /// `attach` insists on one of the two.
    ///
    /// # Errors
    /// There is no such interface, it is down, it takes no XDP program or has one, or privileges are lacking.
    pub fn attach(interface: &str, attach: Option<XdpAttach>) -> Result<Self, OpenError> {
        let interface = Interface::find(interface)?;
        if !interface.up {
            return Err(OpenError::InterfaceDown { interface: interface.name });
        }
        let queues = interface.rx_queues;
        let sockets = bpf::create_socket_map(queues).map_err(OpenError::io("create a BPF map"))?;
        let (program, fragments) = load(&sockets).map_err(OpenError::io("load a BPF program"))?;
        let (link, attach) = attach_best(&program, &interface, attach)?;
        let attachment = Arc::new(Attachment { interface, attach, fragments, sockets, link });
        register(&attachment);
        Ok(Self { attachment })
    }

    /// Where the program runs.
    pub fn attached(&self) -> XdpAttach {
        self.attachment.attach
    }

    /// The interface as it was when the program was attached.
    pub fn interface(&self) -> &Interface {
        &self.attachment.interface
    }

    /// Whether frames longer than one buffer reach the sockets.
    pub fn takes_fragments(&self) -> bool {
        self.attachment.fragments
    }

    /// Sends the frames of a queue to a socket.
    pub(super) fn insert(&self, queue: u32, socket: BorrowedFd<'_>) -> Result<(), OpenError> {
        bpf::insert_socket(self.attachment.sockets.as_fd(), queue, socket)
            .map_err(OpenError::io("enter the socket into the BPF map"))
    }
}

/// Takes every steering program of this process off its interface; their sockets receive nothing from then on.
///
/// For a thread that handles signals, just before the process exits.
pub fn detach_all() {
    let attached = std::mem::take(&mut *ATTACHED.lock().unwrap_or_else(PoisonError::into_inner));
    attached.iter().filter_map(Weak::upgrade).for_each(|attachment| attachment.detach());
}

impl Attachment {
    fn detach(&self) {
        // Fails only when the interface is gone, and the program with it.
        if let Err(error) = bpf::detach(self.link.as_fd()) {
            tracing::debug!(interface = self.interface.name, %error, "the XDP program was gone already");
        }
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        // Closing the link would do, but for a child process that inherited it by a fork.
        self.detach();
    }
}

fn register(attachment: &Arc<Attachment>) {
    let mut attached = ATTACHED.lock().unwrap_or_else(PoisonError::into_inner);
    attached.retain(|known| known.strong_count() > 0);
    attached.push(Arc::downgrade(attachment));
}

/// Loads the program, able to see frames in several buffers where the kernel knows such (5.18 and later).
fn load(sockets: &OwnedFd) -> io::Result<(OwnedFd, bool)> {
    let code = steer::assemble(std::os::fd::AsRawFd::as_raw_fd(sockets), Verdict::Pass);
    match bpf::load_program(&code, true) {
        Ok(program) => Ok((program, true)),
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            Ok((bpf::load_program(&code, false)?, false))
        }
        Err(error) => Err(error),
    }
}

fn attach_best(
    program: &OwnedFd,
    interface: &Interface,
    wanted: Option<XdpAttach>,
) -> Result<(OwnedFd, XdpAttach), OpenError> {
    let first = wanted.unwrap_or(XdpAttach::Native);
    let reason = match attach_one(program, interface, first)? {
        Ok(link) => return Ok((link, first)),
        Err(reason) => reason,
    };
    if wanted.is_some() {
        return Err(OpenError::NoXdp { interface: interface.name.clone(), reason });
    }
    tracing::warn!(
        interface = interface.name,
        driver = interface.driver,
        %reason,
        "the driver takes no XDP program; the slower generic path is used"
    );
    match attach_one(program, interface, XdpAttach::Generic)? {
        Ok(link) => Ok((link, XdpAttach::Generic)),
        Err(reason) => Err(OpenError::NoXdp { interface: interface.name.clone(), reason }),
    }
}

/// The inner error is a refusal that another way of attaching may not meet.
fn attach_one(
    program: &OwnedFd,
    interface: &Interface,
    attach: XdpAttach,
) -> Result<io::Result<OwnedFd>, OpenError> {
    let error = match bpf::attach(program.as_fd(), interface.index, attach) {
        Ok(link) => return Ok(Ok(link)),
        Err(error) => error,
    };
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => Err(OpenError::NotPermitted { action: "attach an XDP program" }),
        _ => match bpf::attached_program(interface.index) {
            Ok(Some(program)) => {
                Err(OpenError::ProgramPresent { interface: interface.name.clone(), program })
            }
            _ => Ok(Err(error)),
        },
    }
}

#[cfg(test)]
mod tests;
