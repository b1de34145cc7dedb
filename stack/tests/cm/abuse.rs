//! Whatever arrives, and whatever the application calls: no panic, no growth, no word to strangers beyond one answer.

use proptest::prelude::*;

use crate::host::*;
use crate::peer::*;
use crate::states::{STATES, Scene};
use uroce_stack::cm::*;
use uroce_stack::wire::cm::CmMad;
use uroce_stack::wire::{MAD_LEN, Qpn};

/// Bytes that may be a message: often with a valid header, and with identifiers that exist.
fn datagram() -> impl Strategy<Value = Vec<u8>> {
    let body = proptest::collection::vec(any::<u8>(), MAD_LEN);
    (0x0fu8..0x1c, body, any::<bool>(), 0usize..4).prop_map(|(attribute, mut mad, valid, cut)| {
        if valid {
            mad[..4].copy_from_slice(&[1, 7, 2, 3]);
            mad[16..18].copy_from_slice(&[0, attribute]);
        }
        mad.truncate(MAD_LEN - cut / 3);
        mad
    })
}

proptest! {
    #[test]
    fn no_bytes_hurt_in_any_state(
        place in 0..STATES.len(),
        named in any::<bool>(),
        mads in proptest::collection::vec(datagram(), 1..8),
    ) {
        let Scene { mut host, id, .. } = Scene::of(STATES[place]);
        for mut mad in mads {
            if named && mad.len() == MAD_LEN {
                mad[24..28].copy_from_slice(&PEER_ID.to_be_bytes());
                mad[28..32].copy_from_slice(&id.comm_id().to_be_bytes());
            }
            let sender = Sender { source: ip(THERE), destination: ip(HERE), source_qp: Qpn::GSI };
            host.cm.receive(host.now, &sender, &mad);
            prop_assert!(host.datagrams().len() <= 2, "an answer, and a DREQ when it was stale");
            prop_assert!(host.cm.connections() <= 2);
        }
        while host.cm.next_deadline().is_some() {
            host.next_timeout();
            for out in host.datagrams() {
                prop_assert!(CmMad::parse(&out.mad).is_ok());
            }
        }
    }

    #[test]
    fn no_call_hurts_in_any_state(place in 0..STATES.len(), calls in proptest::collection::vec(0u8..9, 1..12)) {
        let Scene { mut host, id, peer } = Scene::of(STATES[place]);
        for call in calls {
            let now = host.now;
            let known = host.cm.state(id).is_some();
            let result = match call {
                0 => host.cm.establish(id, b""),
                1 => host.cm.accept(now, id, &accept_params(b"")),
                2 => host.cm.disconnect(now, id, b""),
                3 => host.cm.destroy(now, id),
                4 => host.cm.mra(id, 3, b""),
                5 => host.cm.sidr_accept(id, OUR_QPN, 1, b""),
                6 => { host.receive(&peer.dreq()); Ok(()) }
                7 => { host.receive(&peer.rep()); Ok(()) }
                _ => { host.next_timeout_if_any(); Ok(()) }
            };
            prop_assert!(known || call > 5 || result == Err(CmError::NotFound));
        }
    }
}
