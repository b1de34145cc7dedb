//! Every frame that Linux `rdma_rxe` sent to port 4791 is read and written again byte for byte.

mod common;

use common::{Expected, check};
use uroce_pcap_tests::Set;
use uroce_stack::wire::Malformed::NotRoce;

#[test]
fn every_frame_is_written_as_it_was_read() {
    check(Set::Rxe, TABLE);
}

/// `all` has the 727 frames of protocol section 3, and those of the machines' own traffic.
const TABLE: &[Expected] = &[
    ("all", 727, &[(NotRoce, 52)]),
    ("cm_rping", 41, &[]),
    ("cm_ucmatose", 13, &[]),
    ("cm_udaddy", 6, &[]),
    ("cm_write_bw", 89, &[]),
    ("edge_atomic_cas", 2, &[]),
    ("edge_atomic_fadd", 2, &[]),
    ("edge_bad_rkey_read", 2, &[]),
    ("edge_bad_rkey_write", 2, &[]),
    ("edge_mixed_pipeline", 32, &[]),
    ("edge_noperm_read", 2, &[]),
    ("edge_noperm_write", 2, &[]),
    ("edge_oob_write", 2, &[]),
    ("edge_psn_wrap_read", 6, &[]),
    ("edge_psn_wrap_write", 6, &[]),
    ("edge_read_zero", 2, &[]),
    ("edge_recv_too_small", 2, &[]),
    ("edge_rnr_nak_exhaust", 6, &[]),
    ("edge_rnr_nak_recover", 20, &[]),
    ("edge_send_imm", 4, &[]),
    ("edge_send_imm_zero", 2, &[]),
    ("edge_send_odd3", 2, &[]),
    ("edge_send_solicited", 2, &[]),
    ("edge_send_zero", 2, &[]),
    ("edge_write_imm", 4, &[]),
    ("edge_write_imm_zero", 2, &[]),
    ("edge_write_zero", 2, &[]),
    ("rc_atomic_cas", 10, &[]),
    ("rc_atomic_fadd", 10, &[]),
    ("rc_bidir", 40, &[]),
    ("rc_read_10000", 55, &[]),
    ("rc_read_64k", 85, &[]),
    ("rc_send_bw", 20, &[]),
    ("rc_send_events", 16, &[]),
    ("rc_send_ipv6", 32, &[]),
    ("rc_send_mtu1024", 40, &[]),
    ("rc_write_5000", 30, &[]),
    ("rc_write_64k", 85, &[]),
    ("rc_write_lat8", 20, &[]),
    ("rc_write_mtu256", 35, &[]),
    ("srq_send", 48, &[]),
    ("uc_send", 24, &[]),
    ("uc_write_bw", 15, &[]),
    ("ud_send", 8, &[]),
    ("ud_send_bw", 5, &[]),
];
