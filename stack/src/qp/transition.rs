//! Which transitions `modify_qp` allows, and with which attributes (IBTA, Modify Queue Pair; protocol of the verbs).

use super::attr::{AttrMask, QpAttr, QpState, QpType};
use super::connection::Port;
use crate::config::Limits;
use crate::error::ModifyError;
use crate::wire::Mtu;

/// Attributes of one transition, beside the state itself.
struct Rule {
    required: AttrMask,
    optional: AttrMask,
}

/// Refuses a change that the state machine, the attribute tables or the ranges forbid; tells the state to go to.
pub(super) fn check(
    attr: &QpAttr,
    kind: QpType,
    from: QpState,
    limits: &Limits,
    port: &Port,
) -> Result<QpState, ModifyError> {
    check_cur_state(attr, from)?;
    let to = attr.state.unwrap_or(from);
    let rule = rule(kind, from, to).ok_or(ModifyError::Transition { from, to })?;
    check_mask(attr.mask(), &rule, from, to)?;
    check_ranges(attr, limits, port.mtu)?;
    check_qkey(attr, kind, port)?;
    Ok(to)
}

fn check_cur_state(attr: &QpAttr, actual: QpState) -> Result<(), ModifyError> {
    match attr.cur_state {
        Some(claimed) if claimed != actual => Err(ModifyError::CurrentState { claimed, actual }),
        _ => Ok(()),
    }
}

fn check_mask(mask: AttrMask, rule: &Rule, from: QpState, to: QpState) -> Result<(), ModifyError> {
    let missing = rule.required - mask;
    if !missing.is_empty() {
        return Err(ModifyError::Missing { from, to, missing });
    }
    let disallowed = mask - rule.required - rule.optional - AttrMask::STATE;
    if !disallowed.is_empty() {
        return Err(ModifyError::Disallowed { from, to, disallowed });
    }
    Ok(())
}

/// The attributes of a transition, beside the state itself; `None` when there is no such transition (section 4.15).
fn rule(kind: QpType, from: QpState, to: QpState) -> Option<Rule> {
    use QpState::{Err, Init, Reset, Rtr, Rts, Sqd, Sqe};
    let (required, optional) = match (from, to) {
        (_, Reset | Err) => (AttrMask::empty(), AttrMask::empty()),
        (Reset, Init) => (at_init(kind), AttrMask::empty()),
        (Init, Init) => (AttrMask::empty(), at_init(kind)),
        (Init, Rtr) => at_rtr(kind),
        (Rtr, Rts) => (at_rts(kind), AttrMask::CUR_STATE | any_time(kind)),
        (Rts | Sqd, Rts) => (AttrMask::empty(), AttrMask::CUR_STATE | any_time(kind)),
        (Sqe, Rts) if !kind.is_reliable() => (AttrMask::empty(), AttrMask::CUR_STATE | any_time(kind)),
        (Rts, Sqd) => (AttrMask::empty(), AttrMask::EN_SQD_ASYNC_NOTIFY),
        (Sqd, Sqd) => (AttrMask::empty(), while_drained(kind)),
        _ => return None,
    };
    Some(Rule { required, optional })
}

/// What lets peers in: the Q_Key of datagrams, the access rights of connections.
fn admission(kind: QpType) -> AttrMask {
    if kind.is_datagram() { AttrMask::QKEY } else { AttrMask::ACCESS_FLAGS }
}

fn at_init(kind: QpType) -> AttrMask {
    let port = if kind == QpType::Gsi { AttrMask::empty() } else { AttrMask::PORT };
    AttrMask::PKEY_INDEX | port | admission(kind)
}

fn at_rtr(kind: QpType) -> (AttrMask, AttrMask) {
    use AttrMask as A;
    let connection = A::AV | A::PATH_MTU | A::DEST_QPN | A::RQ_PSN;
    let responder = A::MAX_DEST_RD_ATOMIC | A::MIN_RNR_TIMER;
    let required = match kind {
        QpType::Ud | QpType::Gsi => A::empty(),
        QpType::Uc | QpType::XrcIni => connection,
        QpType::Rc | QpType::XrcTgt => connection | responder,
    };
    (required, A::PKEY_INDEX | admission(kind))
}

fn at_rts(kind: QpType) -> AttrMask {
    use AttrMask as A;
    match kind {
        QpType::Ud | QpType::Gsi | QpType::Uc => A::SQ_PSN,
        QpType::XrcTgt => A::TIMEOUT | A::SQ_PSN,
        QpType::Rc | QpType::XrcIni => {
            A::TIMEOUT | A::RETRY_CNT | A::RNR_RETRY | A::SQ_PSN | A::MAX_QP_RD_ATOMIC
        }
    }
}

/// What may change while everything runs.
fn any_time(kind: QpType) -> AttrMask {
    let timer = if has_responder(kind) { AttrMask::MIN_RNR_TIMER } else { AttrMask::empty() };
    admission(kind) | timer
}

fn while_drained(kind: QpType) -> AttrMask {
    use AttrMask as A;
    let requester = A::RETRY_CNT | A::RNR_RETRY | A::MAX_QP_RD_ATOMIC;
    let responder = A::MAX_DEST_RD_ATOMIC | A::MIN_RNR_TIMER;
    let common = A::PKEY_INDEX | admission(kind);
    match kind {
        QpType::Ud | QpType::Gsi => common,
        QpType::Uc => common | A::AV,
        QpType::Rc => common | A::AV | A::PORT | A::TIMEOUT | requester | responder,
        QpType::XrcIni => common | A::AV | A::PORT | A::TIMEOUT | requester,
        QpType::XrcTgt => common | A::AV | A::PORT | A::TIMEOUT | responder,
    }
}

const fn has_responder(kind: QpType) -> bool {
    matches!(kind, QpType::Rc | QpType::XrcTgt)
}

/// Bit 31 makes a Q_Key one that only privileged users may set.
const fn check_qkey(attr: &QpAttr, kind: QpType, port: &Port) -> Result<(), ModifyError> {
    match attr.qkey {
        Some(qkey) if qkey >> 31 == 1 && !port.controlled_qkeys && !matches!(kind, QpType::Gsi) => {
            Err(ModifyError::ControlledQkey(qkey))
        }
        _ => Ok(()),
    }
}

fn check_ranges(attr: &QpAttr, limits: &Limits, port_mtu: Mtu) -> Result<(), ModifyError> {
    let ranges = [
        ("pkey_index", attr.pkey_index.map(u32::from), 0),
        ("timeout", attr.timeout.map(u32::from), 31),
        ("retry_cnt", attr.retry_cnt.map(u32::from), 7),
        ("rnr_retry", attr.rnr_retry.map(u32::from), 7),
        ("min_rnr_timer", attr.min_rnr_timer.map(u32::from), 31),
        ("max_rd_atomic", attr.max_rd_atomic.map(u32::from), u32::from(limits.max_qp_init_rd_atom)),
        ("max_dest_rd_atomic", attr.max_dest_rd_atomic.map(u32::from), u32::from(limits.max_qp_rd_atom)),
        ("path_mtu", attr.path_mtu.map(|mtu| mtu.bytes() as u32), port_mtu.bytes() as u32),
        // Only port 1 exists; counted from it so that the smallest allowed value is 0 like everywhere else.
        ("port - 1", attr.port.map(|port| u32::from(port.wrapping_sub(1))), 0),
    ];
    for (attribute, value, high) in ranges {
        if let Some(found) = value.filter(|value| *value > high) {
            return Err(ModifyError::OutOfRange { attribute, found, high });
        }
    }
    check_path(attr)
}

fn check_path(attr: &QpAttr) -> Result<(), ModifyError> {
    match &attr.path {
        Some(path) if path.source.is_ipv4() != path.destination.is_ipv4() => Err(ModifyError::Path),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Access;
    use QpState::{Err, Init, Reset, Rtr, Rts, Sqd, Sqe};

    const STATES: [QpState; 7] = [Reset, Init, Rtr, Rts, Sqd, Sqe, Err];

    fn port() -> Port {
        Port { mtu: Mtu::B1024, rxe_flush_icrc: false, controlled_qkeys: false }
    }

    fn checked(attr: &QpAttr, from: QpState) -> Result<QpState, ModifyError> {
        check(attr, QpType::Rc, from, &Limits::default(), &port())
    }

    const KINDS: [QpType; 6] =
        [QpType::Rc, QpType::Uc, QpType::Ud, QpType::XrcIni, QpType::XrcTgt, QpType::Gsi];

    #[test]
    fn the_transitions_of_the_specification_and_no_others_exist() {
        let allowed: [(QpState, &[QpState]); 7] = [
            (Reset, &[Reset, Init, Err]),
            (Init, &[Reset, Init, Rtr, Err]),
            (Rtr, &[Reset, Rts, Err]),
            (Rts, &[Reset, Rts, Sqd, Err]),
            (Sqd, &[Reset, Rts, Sqd, Err]),
            (Sqe, &[Reset, Err]),
            (Err, &[Reset, Err]),
        ];
        for kind in KINDS {
            for (from, targets) in allowed {
                for to in STATES {
                    let resumes = !kind.is_reliable() && (from, to) == (Sqe, Rts);
                    let expected = targets.contains(&to) || resumes;
                    assert_eq!(rule(kind, from, to).is_some(), expected, "{kind:?} {from:?} to {to:?}");
                }
            }
        }
    }

    #[test]
    fn s07_a_controlled_qkey_is_for_privileged_users() {
        let attr = QpAttr { pkey_index: Some(0), port: Some(1), qkey: Some(0x8001_0000), ..QpAttr::to(Init) };
        let limits = Limits::default();
        let refused = check(&attr, QpType::Ud, Reset, &limits, &port());
        assert_eq!(refused, Result::Err(ModifyError::ControlledQkey(0x8001_0000)));
        let privileged = Port { controlled_qkeys: true, ..port() };
        assert_eq!(check(&attr, QpType::Ud, Reset, &limits, &privileged), Ok(Init));
    }

    #[test]
    fn what_is_missing_is_named() {
        let refused = checked(&QpAttr { port: Some(1), ..QpAttr::to(Init) }, Reset).unwrap_err();
        let missing = AttrMask::PKEY_INDEX | AttrMask::ACCESS_FLAGS;
        assert_eq!(refused, ModifyError::Missing { from: Reset, to: Init, missing });
    }

    #[test]
    fn c40_timeout_attributes_are_legal_only_on_the_way_to_rts() {
        for attr in [
            QpAttr { timeout: Some(14), ..QpAttr::default() },
            QpAttr { retry_cnt: Some(7), ..QpAttr::default() },
            QpAttr { rnr_retry: Some(7), ..QpAttr::default() },
        ] {
            let refused = checked(&attr, Rts).unwrap_err();
            assert_eq!(refused, ModifyError::Disallowed { from: Rts, to: Rts, disallowed: attr.mask() });
        }
        assert_eq!(checked(&QpAttr { min_rnr_timer: Some(12), ..QpAttr::default() }, Rts), Ok(Rts));
    }

    #[test]
    fn c37_values_out_of_range_are_refused() {
        let to_rts = QpAttr {
            timeout: Some(14),
            retry_cnt: Some(7),
            rnr_retry: Some(7),
            sq_psn: Some(crate::wire::Psn::new(0)),
            max_rd_atomic: Some(1),
            ..QpAttr::to(Rts)
        };
        assert_eq!(checked(&to_rts, Rtr), Ok(Rts));
        for wrong in [
            QpAttr { rnr_retry: Some(8), ..to_rts.clone() },
            QpAttr { retry_cnt: Some(8), ..to_rts.clone() },
            QpAttr { timeout: Some(32), ..to_rts.clone() },
            QpAttr { max_rd_atomic: Some(129), ..to_rts.clone() },
        ] {
            assert!(matches!(checked(&wrong, Rtr), Result::Err(ModifyError::OutOfRange { .. })), "{wrong:?}");
        }
    }

    #[test]
    fn only_port_1_and_pkey_index_0_exist() {
        let init = |port, pkey_index| QpAttr {
            port: Some(port),
            pkey_index: Some(pkey_index),
            access: Some(Access::empty()),
            ..QpAttr::to(Init)
        };
        assert_eq!(checked(&init(1, 0), Reset), Ok(Init));
        assert!(checked(&init(0, 0), Reset).is_err());
        assert!(checked(&init(2, 0), Reset).is_err());
        assert!(checked(&init(1, 1), Reset).is_err());
    }

    #[test]
    fn a_wrong_claim_about_the_current_state_is_refused() {
        let attr = QpAttr { cur_state: Some(Sqd), ..QpAttr::to(Rts) };
        assert_eq!(checked(&attr, Rts).unwrap_err(), ModifyError::CurrentState { claimed: Sqd, actual: Rts });
    }
}
