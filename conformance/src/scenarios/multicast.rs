//! Multicast groups: members get what is sent to the group, others do not.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::common::{RECV_ID, SIZE};
use super::datagrams::{datagram, delivers, push, request, room};
use crate::peer::{Datagram, Family, Result, Setup};
use crate::scenario::{Pair, Routes, Scenario};

/// Groups of the families that no other program uses.
const V4: Ipv6Addr = Ipv4Addr::new(239, 77, 4, 91).to_ipv6_mapped();
const V6: Ipv6Addr = Ipv6Addr::new(0xff0e, 0, 0, 0, 0, 0, 0x4791, 0x77);
/// The queue pair number that means "all members".
const MEMBERS: u32 = 0xff_ffff;

/// All of them.
pub(super) fn all() -> Vec<Scenario> {
    vec![
        datagram("ud/multicast".into(), SIZE, member).over(Routes::OnePerFamily),
        datagram("ud/multicast-other-group".into(), SIZE, stranger).over(Routes::OnePerFamily),
    ]
}

fn group(pair: &Pair<'_>) -> Datagram {
    let gid = if pair.route.family == Family::V4 { V4 } else { V6 };
    Datagram { gid, qp_num: MEMBERS, qkey: Setup::QKEY }
}

fn member(pair: &mut Pair<'_>) -> Result<()> {
    let group = group(pair);
    pair.passive.join(group.gid)?;
    pair.passive.post_recv(RECV_ID, room(SIZE))?;
    delivers(pair, &request(SIZE, None, group), 1)
}

/// A member of another group, whose packets the interface takes in as well.
fn stranger(pair: &mut Pair<'_>) -> Result<()> {
    let group = group(pair);
    pair.passive.join(neighbour(group.gid))?;
    pair.passive.post_recv(RECV_ID, room(SIZE))?;
    push(pair, &request(SIZE, None, group), 1)?;
    pair.passive_stays_silent()
}

/// A group whose address differs in the last bit.
fn neighbour(group: Ipv6Addr) -> Ipv6Addr {
    Ipv6Addr::from_bits(group.to_bits() ^ 1)
}
