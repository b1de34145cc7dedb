//! What AF_XDP can do on one interface: found out by attaching for a moment.

use uroce::Mtu;
use uroce_nic::OpenError;
use uroce_nic::host::Interface;
use uroce_nic::probe::{self, XdpSupport};

use super::finding::Finding;

/// How frames would come and go.
pub(super) fn examine(interface: &Interface) -> Vec<Finding> {
    let carrier = interface.vlan.as_ref().map_or(&interface.name, |vlan| &vlan.parent_name);
    match probe::xdp(carrier) {
        Ok(support) => vec![mode(&support), buffers(&support, interface)],
        Err(error) => vec![refused(&error)],
    }
}

fn mode(support: &XdpSupport) -> Finding {
    match support {
        XdpSupport { native: true, zero_copy: true, .. } => Finding::fine("XDP mode", "native, zero-copy"),
        XdpSupport { native: true, .. } => Finding::limit(
            "XDP mode",
            format!("native, but each frame is copied{}", why(support, "zero-copy: ")),
            "an interface whose driver offers AF_XDP zero-copy",
        ),
        XdpSupport { generic: true, .. } => Finding::limit(
            "XDP mode",
            format!("generic: frames pass through the kernel first{}", why(support, "native: ")),
            "an interface whose driver takes XDP programs; some do only below a certain MTU",
        ),
        _ => {
            let found = format!("none{}", why(support, "generic: "));
            Finding::limit("XDP mode", found, "`--backend packet` works, more slowly")
        }
    }
}

/// The reason that starts so, in brackets, without the advice that it ends with.
fn why(support: &XdpSupport, start: &str) -> String {
    let reason = support.reasons.iter().find_map(|reason| reason.strip_prefix(start));
    let fact = reason.map(|reason| reason.split("; ").next().unwrap_or(reason));
    fact.map(|fact| format!(" ({fact})")).unwrap_or_default()
}

fn buffers(support: &XdpSupport, interface: &Interface) -> Finding {
    if support.multi_buffer {
        return Finding::fine("multi-buffer", "frames of every path MTU come whole");
    }
    let found = "frames end at 3840 bytes";
    let remedy = "Linux 6.6 or later, and a driver that passes frames in several buffers";
    match Mtu::for_link(interface.mtu) {
        Some(Mtu::B4096) => {
            Finding::limit("multi-buffer", format!("{found}, which leaves path MTU 2048"), remedy)
        }
        _ => Finding::fine("multi-buffer", format!("{found}, which is enough for this link")),
    }
}

fn refused(error: &OpenError) -> Finding {
    let remedy = match error {
        OpenError::ProgramPresent { .. } | OpenError::QueueBusy { .. } => {
            "end that one, then run the doctor again"
        }
        OpenError::NotPermitted { .. } => "`sudo uroce doctor` finds out what the driver can do",
        OpenError::InterfaceDown { .. } => "bring it up, then run the doctor again",
        _ => "`--backend packet` works without AF_XDP, more slowly",
    };
    // The privileges and the link have a line of their own that says how bad it is.
    match error {
        OpenError::NotPermitted { .. } | OpenError::InterfaceDown { .. } => {
            Finding::limit("XDP mode", format!("not known: {error}"), remedy)
        }
        _ => Finding::fails("XDP mode", error.to_string(), remedy),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    #[test]
    fn modes_from_best_to_none() {
        let none = XdpSupport::default();
        let generic = XdpSupport { generic: true, ..none.clone() };
        let native = XdpSupport { native: true, ..generic.clone() };
        let zero_copy = XdpSupport { zero_copy: true, ..native.clone() };
        let verdicts = [&zero_copy, &native, &generic, &none].map(|support| mode(support).verdict);
        assert_eq!(verdicts, [Verdict::Fine, Verdict::Limit, Verdict::Limit, Verdict::Limit]);
        let reasons =
            vec!["native: eth0 takes no XDP program (not supported); use another backend".to_owned()];
        let found = mode(&XdpSupport { reasons, ..generic }).found;
        assert!(found.ends_with("first (eth0 takes no XDP program (not supported))"), "{found}");
    }

    #[test]
    fn somebody_else_on_the_interface_is_named() {
        let error = OpenError::QueueBusy { interface: "eth0".into(), queue: 0 };
        let finding = refused(&error);
        assert!(
            finding.verdict == Verdict::Fails && finding.found.contains("queue 0 of eth0"),
            "{finding:?}"
        );
    }
}
