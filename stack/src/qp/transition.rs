//! Which transitions `modify_qp` allows, and with which attributes (IBTA, Modify Queue Pair; protocol of the verbs).

use super::attr::{AttrMask, QpAttr, QpState};
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
    from: QpState,
    limits: &Limits,
    port_mtu: Mtu,
) -> Result<QpState, ModifyError> {
    check_cur_state(attr, from)?;
    let to = attr.state.unwrap_or(from);
    let rule = rule(from, to).ok_or(ModifyError::Transition { from, to })?;
    check_mask(attr.mask(), &rule, from, to)?;
    check_ranges(attr, limits, port_mtu)?;
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

/// The table for RC.
fn rule(from: QpState, to: QpState) -> Option<Rule> {
    use AttrMask as A;
    use QpState::{Err, Init, Reset, Rtr, Rts, Sqd};
    let (required, optional) = match (from, to) {
        (_, Reset | Err) => (A::empty(), A::CUR_STATE),
        (Reset, Init) => (A::PKEY_INDEX | A::PORT | A::ACCESS_FLAGS, A::empty()),
        (Init, Init) => (A::empty(), A::PKEY_INDEX | A::PORT | A::ACCESS_FLAGS),
        (Init, Rtr) => (
            A::AV | A::PATH_MTU | A::DEST_QPN | A::RQ_PSN | A::MAX_DEST_RD_ATOMIC | A::MIN_RNR_TIMER,
            A::PKEY_INDEX | A::ACCESS_FLAGS,
        ),
        (Rtr, Rts) => (
            A::TIMEOUT | A::RETRY_CNT | A::RNR_RETRY | A::SQ_PSN | A::MAX_QP_RD_ATOMIC,
            A::CUR_STATE | A::ACCESS_FLAGS | A::MIN_RNR_TIMER,
        ),
        (Rts, Rts) | (Sqd, Rts) => (A::empty(), A::CUR_STATE | A::ACCESS_FLAGS | A::MIN_RNR_TIMER),
        (Rts, Sqd) => (A::empty(), A::CUR_STATE | A::EN_SQD_ASYNC_NOTIFY),
        (Sqd, Sqd) => (
            A::empty(),
            A::PORT
                | A::AV
                | A::TIMEOUT
                | A::RETRY_CNT
                | A::RNR_RETRY
                | A::MAX_QP_RD_ATOMIC
                | A::MAX_DEST_RD_ATOMIC
                | A::ACCESS_FLAGS
                | A::PKEY_INDEX
                | A::MIN_RNR_TIMER,
        ),
        _ => return None,
    };
    Some(Rule { required, optional })
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

    fn checked(attr: &QpAttr, from: QpState) -> Result<QpState, ModifyError> {
        check(attr, from, &Limits::default(), Mtu::B1024)
    }

    #[test]
    fn the_transitions_of_rc_and_no_others_exist() {
        let allowed: [(QpState, &[QpState]); 7] = [
            (Reset, &[Reset, Init, Err]),
            (Init, &[Reset, Init, Rtr, Err]),
            (Rtr, &[Reset, Rts, Err]),
            (Rts, &[Reset, Rts, Sqd, Err]),
            (Sqd, &[Reset, Rts, Sqd, Err]),
            (Sqe, &[Reset, Err]),
            (Err, &[Reset, Err]),
        ];
        for (from, targets) in allowed {
            for to in STATES {
                assert_eq!(rule(from, to).is_some(), targets.contains(&to), "{from:?} to {to:?}");
            }
        }
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
