//! What is owed to the peer, in the order of its requests.

use alloc::collections::VecDeque;

use super::super::connection::{Connection, Header, position};
use super::super::env::Env;
use super::{Refusal, Responder};
use crate::counters::Counter;
use crate::memory::{AccessError, Subject};
use crate::wire::{Aeth, NakCode, Operation, Position, Psn, Syndrome};
use crate::work::RemoteAddr;

/// One response, or one stream of READ responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Response {
    Acknowledge {
        psn: Psn,
        msn: u32,
    },
    Nak {
        code: NakCode,
        psn: Psn,
        msn: u32,
    },
    NotReady {
        psn: Psn,
        msn: u32,
    },
    Read {
        first: Psn,
        sent: u32,
        packets: u32,
        by: Subject,
        remote: RemoteAddr,
        length: u32,
        msn: u32,
        replay: bool,
    },
    Atomic {
        psn: Psn,
        original: u64,
        msn: u32,
        replay: bool,
    },
    /// An ATOMIC WRITE or FLUSH is done; `depth` if it counts as a READ does.
    Done {
        psn: Psn,
        msn: u32,
        depth: bool,
        replay: bool,
    },
}

impl Response {
    /// The PSN of the next packet of it.
    pub(super) fn next_psn(&self) -> Psn {
        match *self {
            Self::Acknowledge { psn, .. }
            | Self::Nak { psn, .. }
            | Self::NotReady { psn, .. }
            | Self::Atomic { psn, .. }
            | Self::Done { psn, .. } => psn,
            Self::Read { first, sent, .. } => first + sent,
        }
    }
}

/// The queue of responses. READs and atomics are bounded by the depth that was agreed on; acknowledgements coalesce,
/// so at most one stands behind each of them; refusals come once a gap.
#[derive(Debug, Default)]
pub(super) struct Responses {
    queue: VecDeque<Response>,
    limit: usize,
}

/// Answers to FLUSHes that wait at most, when nothing else does. More are as good as lost, and asked for again.
const FLUSHES: usize = 64;

impl Responses {
    /// Room for as many READs and atomics, an acknowledgement behind each, a READ that starts again, the refusal of what
    /// comes then, and a batch of FLUSHes, which no depth bounds.
    pub(super) fn set_depth(&mut self, depth: usize) {
        self.limit = 2 * depth + 4 + FLUSHES;
        self.queue.reserve((self.limit + 2).saturating_sub(self.queue.len()));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.queue.clear();
    }

    pub(super) fn has_room(&self) -> bool {
        self.queue.len() < self.limit
    }

    /// READs and atomics that are not answered to the end. One that is answered again does not count: the peer may
    /// have got the first answer meanwhile, and gone on.
    pub(super) fn unanswered(&self) -> usize {
        let unanswered = |response: &&Response| {
            matches!(
                response,
                Response::Read { replay: false, .. }
                    | Response::Atomic { replay: false, .. }
                    | Response::Done { depth: true, replay: false, .. }
            )
        };
        self.queue.iter().filter(unanswered).count()
    }

    /// Queues a response; one that finds no room is as good as lost on the wire, and the peer asks again.
    pub(super) fn push(&mut self, response: Response) {
        if self.has_room() {
            self.queue.push_back(response);
        }
    }

    /// Queues the last response there will be, for which there is always room.
    pub(super) fn push_final(&mut self, response: Response) {
        self.queue.push_back(response);
    }

    /// Acknowledges everything up to `psn`.
    pub(super) fn acknowledge(&mut self, psn: Psn, msn: u32) {
        match self.queue.back_mut() {
            Some(last @ Response::Acknowledge { .. }) => *last = Response::Acknowledge { psn, msn },
            _ => self.push(Response::Acknowledge { psn, msn }),
        }
    }

    /// Answers from `psn` on anew: what is queued for this and later requests gives way to `response`.
    pub(super) fn restart(&mut self, psn: Psn, response: Response) {
        self.queue.retain(|queued| queued.next_psn().distance(psn) < 0);
        self.queue.push_back(response);
    }

    /// Whether a response to the request at `psn` is queued and not yet past it.
    pub(super) fn will_answer(&self, psn: Psn) -> bool {
        self.queue.iter().any(|response| match *response {
            Response::Atomic { psn: answered, .. } | Response::Done { psn: answered, .. } => answered == psn,
            Response::Read { first, sent, packets, .. } => {
                let number = psn.distance(first);
                number >= 0 && (sent..packets).contains(&number.unsigned_abs())
            }
            _ => false,
        })
    }
}

impl Responder {
    /// Fills `frame` with the next response, if one is owed. An error ends the connection: a region was revoked
    /// while it was read; its NAK is queued.
    pub(crate) fn poll_transmit(
        &mut self,
        connection: &mut Connection,
        env: &mut Env<'_>,
        frame: &mut [u8],
    ) -> Result<Option<usize>, super::Fatal> {
        let Some(&response) = self.responses.queue.front() else { return Ok(None) };
        let header = match response {
            Response::Read { first, sent, packets, by, remote, length, msn, .. } => {
                let place = Place { psn: first + sent, number: sent, packets, by, remote, length, msn };
                return self.send_read(connection, env, frame, &place);
            }
            Response::Acknowledge { psn, msn } => Header::acknowledge(psn, ack(msn)),
            Response::Nak { code, psn, msn } => {
                Header::acknowledge(psn, Aeth { syndrome: Syndrome::Nak(code), msn })
            }
            Response::NotReady { psn, msn } => {
                let timer = self.settings.min_rnr_timer;
                Header::acknowledge(psn, Aeth { syndrome: Syndrome::Rnr { timer }, msn })
            }
            Response::Atomic { psn, original, msn, .. } => {
                Header::response(psn, Operation::AtomicAcknowledge { aeth: ack(msn), original })
            }
            Response::Done { psn, msn, .. } => {
                let (position, aeth) = (Position::Only, Some(ack(msn)));
                Header::response(psn, Operation::ReadResponse { position, aeth })
            }
        };
        let emitted = connection.emit_bare(frame, &header);
        self.left(env, header.psn);
        Ok(emitted)
    }

    /// The next packet of a READ's responses.
    fn send_read(
        &mut self,
        connection: &mut Connection,
        env: &mut Env<'_>,
        frame: &mut [u8],
        place: &Place,
    ) -> Result<Option<usize>, super::Fatal> {
        let offset = u64::from(place.number) * connection.mtu.bytes() as u64;
        let from = RemoteAddr { va: place.remote.va.wrapping_add(offset), rkey: place.remote.rkey };
        let payload_len = connection.payload_len(place.length, place.number);
        let position = position(place.number, place.packets);
        let aeth = (position.is_start() || position.is_end()).then_some(ack(place.msn));
        let header = Header::response(place.psn, Operation::ReadResponse { position, aeth });
        let (by, memory) = (place.by, &*env.memory);
        let emitted = connection.emit(frame, &header, payload_len, |out, crc| {
            if out.is_empty() { Ok::<_, AccessError>(crc) } else { memory.read_remote(by, from, out, crc) }
        });
        let Some(len) = emitted else { return Err(self.revoked(env, place)) };
        if place.number + 1 == place.packets {
            self.left(env, place.psn);
        } else if let Some(Response::Read { sent, .. }) = self.responses.queue.front_mut() {
            *sent += 1;
        }
        Ok(Some(len))
    }

    /// The first response has been written to a frame.
    fn left(&mut self, env: &mut Env<'_>, psn: Psn) {
        self.responses.queue.pop_front();
        let acknowledged = (!self.responses.is_empty()).then_some(psn);
        self.receives.release(env, acknowledged);
    }

    fn revoked(&mut self, env: &mut Env<'_>, place: &Place) -> super::Fatal {
        env.counters.add(Counter::RespRemoteAccessErrors);
        let Refusal::Fatal(fatal) = Refusal::ACCESS else { unreachable!("an access error is fatal") };
        self.responses.restart(place.psn, Response::Nak { code: fatal.code, psn: place.psn, msn: place.msn });
        fatal
    }
}

/// One packet of a READ's responses.
#[derive(Clone, Copy, Debug)]
struct Place {
    psn: Psn,
    number: u32,
    packets: u32,
    by: Subject,
    remote: RemoteAddr,
    length: u32,
    msn: u32,
}

/// Credits are not given: the peer may send as it likes, and RNR NAKs hold it back.
const fn ack(msn: u32) -> Aeth {
    Aeth { syndrome: Syndrome::UNLIMITED, msn }
}
