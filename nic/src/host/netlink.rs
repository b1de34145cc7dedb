//! One question and its answers over a netlink socket.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkBuffer, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

/// A netlink socket for routes, links, addresses and neighbours.
pub(super) struct Netlink {
    socket: Socket,
}

impl Netlink {
    /// A socket for questions.
    pub(super) fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket })
    }

    /// A socket that hears of changes, without blocking.
    pub(super) fn listen(groups: &[u32]) -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        for &group in groups {
            socket.add_membership(group)?;
        }
        socket.set_non_blocking(true)?;
        Ok(Self { socket })
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Asks for one thing.
    pub(super) fn get(&self, question: RouteNetlinkMessage) -> io::Result<RouteNetlinkMessage> {
        self.ask(question, NLM_F_REQUEST)?;
        let mut answers = Vec::new();
        while answers.is_empty() && !self.read(&mut answers)? {}
        answers.pop().ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// Asks for everything of a kind.
    pub(super) fn list(&self, question: RouteNetlinkMessage) -> io::Result<Vec<RouteNetlinkMessage>> {
        self.ask(question, NLM_F_REQUEST | NLM_F_DUMP)?;
        let mut answers = Vec::new();
        while !self.read(&mut answers)? {}
        Ok(answers)
    }

    fn ask(&self, question: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        let mut header = NetlinkHeader::default();
        header.flags = flags;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(question));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        Ok(())
    }

    /// Reads one datagram of messages into `into`; true when it held the end of the answer.
    pub(super) fn read(&self, into: &mut Vec<RouteNetlinkMessage>) -> io::Result<bool> {
        let (bytes, _) = self.socket.recv_from_full()?;
        let mut rest = bytes.as_slice();
        while let Some(length) = next_length(rest) {
            let (message, after) = rest.split_at(length);
            // Attributes unknown to the decoder are kept by it as they are; a message that it cannot decode at all
            // is of a kind that we did not ask for.
            if let Ok(message) = NetlinkMessage::deserialize(message) {
                match message.payload {
                    NetlinkPayload::Done(_) => return Ok(true),
                    NetlinkPayload::Error(error) if error.code.is_some() => return Err(error.to_io()),
                    NetlinkPayload::Error(_) => return Ok(true),
                    NetlinkPayload::InnerMessage(message) => into.push(message),
                    _ => {}
                }
            }
            rest = &after[(length.next_multiple_of(4) - length).min(after.len())..];
        }
        Ok(false)
    }
}

/// Length of the message at the front, if there is a whole one.
fn next_length(bytes: &[u8]) -> Option<usize> {
    let length = NetlinkBuffer::new_checked(bytes).ok()?.length() as usize;
    (length > 0 && length <= bytes.len()).then_some(length)
}
