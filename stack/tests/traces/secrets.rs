//! Numbers that peers must not guess (S01, S02).

use std::collections::HashSet;

use crate::common::*;

fn engine(seed: u8) -> (Engine, Pd, QpInit) {
    let mut engine = Engine::new(Config::new([seed; 32], Mtu::B1024)).expect("the configuration is valid");
    let pd = engine.alloc_pd().expect("room for a protection domain");
    let (cq, _reader) = engine.create_cq(1).expect("room for a completion queue");
    let setup = Setup { depth: 1, ..Setup::default() };
    (engine, pd, QpInit { max_send_sge: 1, max_recv_sge: 1, max_inline_data: 0, ..qp_init(&setup, cq, cq) })
}

fn qpns(seed: u8, count: usize) -> Vec<u32> {
    let (mut engine, pd, init) = engine(seed);
    (0..count).map(|_| engine.create_qp(pd, &init).expect("room for a queue pair").qpn.get()).collect()
}

fn rkeys(seed: u8, count: usize) -> Vec<u32> {
    let (mut engine, pd, _) = engine(seed);
    let register =
        |_| engine.register_mr(pd, Region::alloc(1), 0, Access::empty()).expect("room for a region").rkey;
    (0..count).map(register).collect()
}

/// How often each of the low `bits` bits is set, in percent.
fn balance(numbers: &[u32], bits: u32) -> Vec<usize> {
    let ones = |bit| numbers.iter().filter(|number| *number >> bit & 1 == 1).count();
    (0..bits).map(|bit| ones(bit) * 100 / numbers.len()).collect()
}

fn differences(numbers: &[u32]) -> usize {
    numbers.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect::<HashSet<_>>().len()
}

#[test]
fn s02_queue_pair_numbers_follow_no_pattern() {
    let numbers = qpns(1, 1000);
    assert!(numbers.iter().all(|number| (2..0xFF_FFFF).contains(number)));
    assert_eq!(numbers.iter().collect::<HashSet<_>>().len(), 1000);
    assert!(differences(&numbers) > 995);
    assert!(balance(&numbers, 24).iter().all(|percent| (40..=60).contains(percent)));
}

#[test]
fn s01_keys_follow_no_pattern() {
    let numbers = rkeys(1, 1000);
    assert_eq!(numbers.iter().collect::<HashSet<_>>().len(), 1000);
    assert!(differences(&numbers) > 995);
    assert!(balance(&numbers, 32).iter().all(|percent| (40..=60).contains(percent)));
}

#[test]
fn another_seed_is_another_sequence_and_the_same_seed_the_same() {
    let common = |a: Vec<u32>, b: Vec<u32>| a.iter().filter(|number| b.contains(number)).count();
    assert!(common(qpns(1, 100), qpns(2, 100)) <= 1);
    assert!(common(rkeys(1, 100), rkeys(2, 100)) <= 1);
    assert_eq!((qpns(3, 100), rkeys(3, 100)), (qpns(3, 100), rkeys(3, 100)));
}

#[test]
fn s02_a_number_is_not_used_again_soon() {
    let (mut engine, pd, init) = engine(4);
    let mut seen = HashSet::new();
    for _ in 0..4000 {
        let qpn = engine.create_qp(pd, &init).expect("room for a queue pair").qpn;
        assert!(seen.insert(qpn), "{qpn} again");
        engine.destroy_qp(qpn).expect("it exists");
    }
}

#[test]
fn s01_2_to_the_16_guesses_hit_nothing_and_are_counted() {
    let mut host = Host::new();
    let memory = host.bytes(0, AREA);
    for guess in 0..1 << 16 {
        host.recv(write(Position::Only, 100, RemoteAddr { va: VA, rkey: 0x100 + guess }, 1, b"!").ack_req());
        assert_eq!(host.state(), QpState::Err);
        host.sent();
        host.modify(&QpAttr::to(QpState::Reset));
        host.bring_up();
        host.events();
    }
    assert_eq!(host.count(Counter::RespRemoteAccessErrors), 1 << 16);
    assert_eq!(host.bytes(0, AREA), memory);
}

#[test]
fn section_9_3_identifications_start_anywhere_and_vary() {
    let first = |seed| {
        let (mut engine, pd, init) = engine(seed);
        let NewQp { qpn, mut send, recv: _recv } =
            engine.create_qp(pd, &init).expect("room for a queue pair");
        for state in [QpState::Init, QpState::Rtr, QpState::Rts] {
            engine.modify_qp(Instant::ZERO, qpn, &attr_to(state, &Setup::default())).expect("allowed");
        }
        let op = SendOp::Send { immediate: None };
        let wr =
            SendWr { wr_id: 1, op, flags: SendFlags::empty(), data: Gather::Sges(&[]), to: Recipient::Peer };
        send.push(&wr).expect("room");
        send.ring_doorbell();
        let mut frame = [0; 2048];
        let len = engine.transmit(Instant::ZERO, &mut frame).expect("a frame");
        Packet::parse(&frame[..len], &[]).expect("valid").ip.ident
    };
    let idents: HashSet<u16> = (0..32).map(first).collect();
    assert!(idents.len() > 30 && !idents.contains(&0));
}
