//! The limits of a device, under the names that `ibv_devinfo -v` has for them; those that it does not show last.

use uroce::Limits;

/// A name and its value.
pub(super) type Limit = (&'static str, u64);

/// Every limit.
pub(super) fn all(limits: &Limits) -> Vec<Limit> {
    // Names every field: a limit that is new must be shown, too.
    let &Limits {
        max_qp,
        max_cq,
        max_mr,
        max_pd,
        max_mw,
        max_srq,
        max_srq_wr,
        max_srq_sge,
        max_xrcd,
        max_mcast_grp,
        max_mcast_qp_attach,
        max_mr_size,
        max_qp_wr,
        max_sge,
        max_cqe,
        max_inline_data,
        max_msg_sz,
        max_qp_rd_atom,
        max_qp_init_rd_atom,
    } = limits;
    let product = |one: u32, other: u32| u64::from(one) * u64::from(other);
    vec![
        ("max_mr_size", max_mr_size),
        ("max_qp", max_qp.into()),
        ("max_qp_wr", max_qp_wr.into()),
        ("max_sge", max_sge.into()),
        ("max_sge_rd", max_sge.into()),
        ("max_cq", max_cq.into()),
        ("max_cqe", max_cqe.into()),
        ("max_mr", max_mr.into()),
        ("max_pd", max_pd.into()),
        ("max_qp_rd_atom", max_qp_rd_atom.into()),
        ("max_res_rd_atom", product(max_qp, max_qp_rd_atom.into())),
        ("max_qp_init_rd_atom", max_qp_init_rd_atom.into()),
        ("max_mw", max_mw.into()),
        ("max_mcast_grp", max_mcast_grp.into()),
        ("max_mcast_qp_attach", max_mcast_qp_attach.into()),
        ("max_total_mcast_qp_attach", product(max_mcast_grp, max_mcast_qp_attach)),
        ("max_srq", max_srq.into()),
        ("max_srq_wr", max_srq_wr.into()),
        ("max_srq_sge", max_srq_sge.into()),
        ("max_pkeys", 1),
        ("max_msg_sz", max_msg_sz.into()),
        ("max_xrcd", max_xrcd.into()),
        ("max_inline_data", max_inline_data.into()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_shown_once() {
        let mut names: Vec<&str> = all(&Limits::default()).into_iter().map(|(name, _)| name).collect();
        let shown = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), shown);
    }
}
