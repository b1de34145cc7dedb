//! Every captured connection, in both roles.

use uroce_pcap_tests::Set;

use crate::data::check_data;
use crate::mads::SETS;
use crate::replay::Replay;
use crate::session::{Session, Side};

fn sessions() -> Vec<(Set, &'static str, Session)> {
    let named = SETS.iter().flat_map(|(set, names)| names.iter().map(|name| (*set, *name)));
    named
        .flat_map(|(set, name)| Session::all(set, name).into_iter().map(move |session| (set, name, session)))
        .collect()
}

#[test]
fn we_say_what_either_side_said() {
    let sessions = sessions();
    assert_eq!(sessions.len(), 9);
    for (_, _, session) in &sessions {
        for side in [Side::Active, Side::Passive] {
            Replay::new(session, side).run();
        }
    }
}

/// Protocol section 6.6, cases X09 and C77: what we would set our queue pair to is what the captured side's did.
#[test]
fn queue_pairs_are_set_to_what_the_traffic_shows() {
    let mut asked = 0;
    for (set, name, session) in sessions() {
        if session.req().is_none() {
            continue;
        }
        for side in [Side::Active, Side::Passive] {
            let settings = Replay::new(&session, side).run().expect("a connection has settings");
            asked += usize::from(check_data(set, name, &session, side, &settings));
        }
    }
    // In `cm_write_bw` one connection carries writes, all of one side.
    assert_eq!(asked, 2 * 8 - 1, "sides that made requests");
}
