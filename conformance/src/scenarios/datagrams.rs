//! Datagrams: the area before the payload, who sent it, and what is dropped.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::common::{IMMEDIATE, RECV_ID, SEND_ID, SIZE, check_received};
use crate::deviation::{CONTROLLED_QKEY, LONG_DATAGRAM, LOOPBACK_CHECKSUM};
use crate::peer::{
    Completion, Datagram, Operation, Part, Request, Result, Service, Setup, flag, opcode, status,
};
use crate::scenario::{
    FIRST_PLACE, Pair, Routes, Scenario, check_equal, check_memory, check_status, check_success, pattern,
    place,
};

/// Bytes before the payload: an IPv6 header, or 20 bytes and an IPv4 header.
pub(super) const AREA: usize = 40;
const UDP: u8 = 17;

/// All of them.
pub(super) fn all(mtu: usize) -> Vec<Scenario> {
    let mut list = Vec::new();
    for size in [0, 1, 3, mtu] {
        let arrives = |immediate| move |pair: &mut Pair<'_>| arrives(pair, size, immediate);
        list.push(datagram(format!("ud/send/{size}"), size, arrives(None)).over(Routes::OnePerFamily));
        list.push(
            datagram(format!("ud/send-imm/{size}"), size, arrives(Some(IMMEDIATE)))
                .over(Routes::OnePerFamily),
        );
    }
    list.push(datagram("ud/wrong-qkey".into(), SIZE, wrong_qkey));
    list.push(datagram("ud/controlled-qkey".into(), SIZE, controlled_qkey));
    list.push(datagram("ud/no-receive".into(), SIZE, no_receive));
    list.push(datagram("ud/short-receive".into(), SIZE, short_receive));
    list.push(datagram("ud/too-long".into(), Setup::PORT_MTU + 1, too_long));
    list
}

/// A scenario of datagrams of up to `size` bytes of payload.
pub(super) fn datagram(
    name: String,
    size: usize,
    run: impl Fn(&mut Pair<'_>) -> Result<()> + 'static,
) -> Scenario {
    Scenario::message(name, AREA + size, run).with(|demands| demands.service = Service::Ud)
}

/// A datagram from the usual place.
pub(super) const fn request(size: usize, immediate: Option<u32>, to: Datagram) -> Request {
    Request::new(SEND_ID, Operation::Send { immediate }, place(size)).to(to)
}

/// Room for a datagram of this size.
pub(super) const fn room(size: usize) -> Part {
    place(AREA + size)
}

/// Sends a datagram with fresh data.
pub(super) fn push(pair: &mut Pair<'_>, request: &Request, seed: u32) -> Result<Vec<u8>> {
    let data = pattern(request.part.length, seed);
    pair.active.write(request.part.offset, &data)?;
    check_success(&pair.request(request)?, SEND_ID, opcode::SEND)?;
    Ok(data)
}

/// Sends a datagram into the receive that is posted for it and checks all that a receiver gets to know.
pub(super) fn delivers(pair: &mut Pair<'_>, request: &Request, seed: u32) -> Result<()> {
    let data = push(pair, request, seed)?;
    let received = pair.passive_completion()?;
    check_received(&received, RECV_ID, AREA + data.len())?;
    check_sender(pair, &received)?;
    check_area(pair, request)?;
    check_payload(pair, &data)
}

fn arrives(pair: &mut Pair<'_>, size: usize, immediate: Option<u32>) -> Result<()> {
    pair.passive.post_recv(RECV_ID, room(size))?;
    let request = request(size, immediate, pair.datagram());
    let data = push(pair, &request, 1)?;
    let received = pair.passive_completion()?;
    check_received(&received, RECV_ID, AREA + size)?;
    check_equal("immediate data", received.immediate, immediate)?;
    check_sender(pair, &received)?;
    check_area(pair, &request)?;
    check_payload(pair, &data)
}

fn check_sender(pair: &Pair<'_>, received: &Completion) -> Result<()> {
    check_equal("source queue pair", received.src_qp, pair.sources[0].qp_num)?;
    check_equal("flag of the global route", received.flags & flag::GRH, flag::GRH)
}

/// Checks the IP header that the receive begins with.
fn check_area(pair: &mut Pair<'_>, request: &Request) -> Result<()> {
    let area = pair.passive.read(Part { offset: FIRST_PLACE, length: AREA })?;
    let to = request.to.map_or(pair.targets[0].gid, |datagram| datagram.gid);
    let from = pair.sources[0].gid;
    match (from.to_ipv4_mapped(), to.to_ipv4_mapped()) {
        (Some(from), Some(to)) => {
            check_v4_header(&area[AREA - 20..], from, to)?;
            let filled_in = pair.of_loopback(true, &LOOPBACK_CHECKSUM, false);
            check_equal("whether its checksum is right", ones_sum(&area[AREA - 20..]) == 0xffff, filled_in)
        }
        _ => check_v6_header(&area, from, to),
    }
}

fn check_v4_header(header: &[u8], from: Ipv4Addr, to: Ipv4Addr) -> Result<()> {
    check_equal("version and length of the IPv4 header", header[0], 0x45)?;
    check_equal("its protocol", header[9], UDP)?;
    check_equal("its source", &header[12..16], &from.octets()[..])?;
    check_equal("its destination", &header[16..20], &to.octets()[..])
}

fn check_v6_header(header: &[u8], from: Ipv6Addr, to: Ipv6Addr) -> Result<()> {
    check_equal("version of the IPv6 header", header[0] >> 4, 6)?;
    check_equal("its next header", header[6], UDP)?;
    check_equal("its source", &header[8..24], &from.octets()[..])?;
    check_equal("its destination", &header[24..40], &to.octets()[..])
}

/// The sum that an IPv4 header with a right checksum has.
fn ones_sum(header: &[u8]) -> u32 {
    let words = header.chunks_exact(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let sum: u32 = words.sum();
    (sum & 0xffff) + (sum >> 16)
}

/// Checks the payload behind the area, and that nothing follows it.
fn check_payload(pair: &mut Pair<'_>, data: &[u8]) -> Result<()> {
    let area = pair.passive.read(Part { offset: FIRST_PLACE, length: AREA })?;
    let whole = [area, data.to_vec()].concat();
    check_memory(pair.passive, FIRST_PLACE, &whole)
}

/// A datagram that is not for this Q_Key is dropped in silence, and its receive waits for the next.
fn wrong_qkey(pair: &mut Pair<'_>) -> Result<()> {
    let to = pair.datagram();
    dropped(pair, &request(SIZE, None, Datagram { qkey: to.qkey ^ 1, ..to }))?;
    delivers(pair, &request(SIZE, None, to), 2)
}

fn dropped(pair: &mut Pair<'_>, request: &Request) -> Result<()> {
    pair.passive.post_recv(RECV_ID, room(SIZE))?;
    push(pair, request, 1)?;
    pair.passive_stays_silent()
}

/// With bit 31 set, the queue pair's own Q_Key is sent, whatever the rest says.
fn controlled_qkey(pair: &mut Pair<'_>) -> Result<()> {
    let to = pair.datagram();
    let controlled = request(SIZE, None, Datagram { qkey: 0x8000_0001, ..to });
    if pair.of_active(true, &CONTROLLED_QKEY, false) {
        pair.passive.post_recv(RECV_ID, room(SIZE))?;
        return delivers(pair, &controlled, 1);
    }
    dropped(pair, &controlled)
}

fn no_receive(pair: &mut Pair<'_>) -> Result<()> {
    let request = request(SIZE, None, pair.datagram());
    push(pair, &request, 1)?;
    pair.passive_stays_silent()?;
    pair.passive.post_recv(RECV_ID, room(SIZE))?;
    pair.passive_stays_silent()?;
    delivers(pair, &request, 2)
}

/// A receive without room for the datagram waits for one that fits.
fn short_receive(pair: &mut Pair<'_>) -> Result<()> {
    let to = pair.datagram();
    pair.passive.post_recv(RECV_ID, room(SIZE / 2))?;
    push(pair, &request(SIZE, None, to), 1)?;
    pair.passive_stays_silent()?;
    delivers(pair, &request(SIZE / 2, None, to), 2)
}

/// More than a packet takes is refused where it is posted, and never arrives.
fn too_long(pair: &mut Pair<'_>) -> Result<()> {
    // The queue pair has no path MTU: the port's counts, which is larger than that of some routes.
    let size = Setup::PORT_MTU + 1;
    pair.passive.post_recv(RECV_ID, room(SIZE))?;
    let request = request(size, None, pair.datagram());
    let expected = pair.of_active(status::LOC_LEN_ERR, &LONG_DATAGRAM, status::SUCCESS);
    check_status(&pair.request(&request)?, SEND_ID, expected)?;
    pair.passive_stays_silent()
}
