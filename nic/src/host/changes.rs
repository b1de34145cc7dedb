//! Hearing of what happens to an interface while it is in use.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;

use netlink_packet_route::link::{LinkFlags, LinkMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::interface::{address_of, mtu_of};
use super::netlink::Netlink;
use super::{HostError, Interface};

/// Groups of changes of links, IPv4 addresses and IPv6 addresses (`RTNLGRP_*` of the kernel's ABI).
const GROUPS: [u32; 3] = [1, 5, 9];

/// Something that happened to the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It lost its carrier or was taken down.
    LinkDown,
    /// It is up and has a carrier.
    LinkUp,
    /// It is gone, or was moved to another network namespace.
    Removed,
    /// It lost this address.
    AddressRemoved(IpAddr),
    /// Its MTU is now this many bytes.
    MtuChanged(u32),
}

/// Tells the changes of one interface since this was made, in order.
pub struct Changes {
    netlink: Netlink,
    index: u32,
    up: bool,
    mtu: u32,
    queue: VecDeque<Change>,
}

impl Changes {
    /// Starts listening; what differs from `interface` as it was found counts as a change.
    ///
    /// # Errors
    /// The kernel does not give a netlink socket.
    pub fn watch(interface: &Interface) -> Result<Self, HostError> {
        let netlink = Netlink::listen(&GROUPS).map_err(HostError::kernel("changes of its interfaces"))?;
        let (index, mtu) = (interface.index, interface.mtu);
        Ok(Self { netlink, index, mtu, up: interface.up && interface.carrier, queue: VecDeque::new() })
    }

    /// The next change, if there is one. Never blocks.
    pub fn poll(&mut self) -> Option<Change> {
        while self.queue.is_empty() {
            let mut messages = Vec::new();
            match self.netlink.read(&mut messages) {
                Ok(_) => messages.iter().for_each(|message| self.note(message)),
                // The kernel had more to tell than the socket holds: what was lost is unknown, ask for the state.
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => self.catch_up(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        self.queue.pop_front()
    }

    /// Readable when [`poll`](Self::poll) may have something.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.netlink.fd()
    }

    fn note(&mut self, message: &RouteNetlinkMessage) {
        match message {
            RouteNetlinkMessage::NewLink(link) if self.is_ours(link) => self.note_link(link),
            RouteNetlinkMessage::DelLink(link) if self.is_ours(link) => {
                self.queue.push_back(Change::Removed);
            }
            RouteNetlinkMessage::DelAddress(address) if address.header.index == self.index => {
                self.queue.extend(address_of(address).map(Change::AddressRemoved));
            }
            _ => {}
        }
    }

    /// A bridge tells of its ports with the same messages, in a family of its own: leaving one is not being removed.
    fn is_ours(&self, link: &LinkMessage) -> bool {
        link.header.index == self.index && link.header.interface_family == AddressFamily::Unspec
    }

    fn note_link(&mut self, link: &LinkMessage) {
        let up = link.header.flags.contains(LinkFlags::Up | LinkFlags::LowerUp);
        if up != self.up {
            self.up = up;
            self.queue.push_back(if up { Change::LinkUp } else { Change::LinkDown });
        }
        if let Some(mtu) = mtu_of(link).filter(|&mtu| mtu != self.mtu) {
            self.mtu = mtu;
            self.queue.push_back(Change::MtuChanged(mtu));
        }
    }

    fn catch_up(&mut self) {
        let Ok(netlink) = Netlink::open() else { return };
        let mut question = LinkMessage::default();
        question.header.index = self.index;
        match netlink.get(RouteNetlinkMessage::GetLink(question)) {
            Ok(message) => self.note(&message),
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => self.queue.push_back(Change::Removed),
            Err(error) => tracing::warn!(%error, "changes of an interface were lost"),
        }
    }
}
