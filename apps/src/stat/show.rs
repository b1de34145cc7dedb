//! Endpoints and their counters for people, at one time or as they changed since.

use super::document::{Counts, Endpoint, QueuePairStat};
use crate::stats::gbps;
use crate::table::{Align, Table};

/// What was seen before, and how long ago.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before<'a> {
    pub(super) endpoints: &'a [Endpoint],
    pub(super) seconds: f64,
}

impl<'a> Before<'a> {
    fn of(self, endpoint: &Endpoint) -> Option<&'a Endpoint> {
        self.endpoints.iter().find(|earlier| earlier.is_same(endpoint))
    }
}

/// One line for each endpoint.
pub(super) fn list(endpoints: &[Endpoint]) -> String {
    use Align::{Left, Right};
    let mut table = Table::new([
        ("PID", Right),
        ("INTERFACE", Left),
        ("BACKEND", Left),
        ("GID", Left),
        ("QPS", Right),
        ("SENT", Right),
        ("RECEIVED", Right),
        ("COMMAND", Left),
    ]);
    for endpoint in endpoints {
        table.row([
            endpoint.pid.to_string(),
            endpoint.interface.clone(),
            endpoint.backend.clone(),
            endpoint.gid.clone(),
            endpoint.queue_pairs.len().to_string(),
            endpoint.counter("sent_pkts").to_string(),
            endpoint.counter("rcvd_pkts").to_string(),
            endpoint.command.clone(),
        ]);
    }
    table.to_string()
}

/// One line for each endpoint, with what passes through it.
pub(super) fn rates(endpoints: &[Endpoint], before: Before<'_>) -> String {
    use Align::{Left, Right};
    let mut table = Table::new([
        ("PID", Right),
        ("INTERFACE", Left),
        ("QPS", Right),
        ("SENT/s", Right),
        ("Gb/s", Right),
        ("RECEIVED/s", Right),
        ("Gb/s", Right),
        ("AGAIN/s", Right),
        ("COMMAND", Left),
    ]);
    for endpoint in endpoints {
        let passed =
            Passed { now: endpoint, then: before.of(endpoint).unwrap_or(endpoint), seconds: before.seconds };
        table.row([
            endpoint.pid.to_string(),
            endpoint.interface.clone(),
            endpoint.queue_pairs.len().to_string(),
            passed.packets("sent_pkts"),
            passed.gbps("tx_bytes"),
            passed.packets("rcvd_pkts"),
            passed.gbps("rx_bytes"),
            passed.packets("retransmitted_pkts"),
            endpoint.command.clone(),
        ]);
    }
    table.to_string()
}

/// What has passed through an endpoint.
struct Passed<'a> {
    now: &'a Endpoint,
    then: &'a Endpoint,
    seconds: f64,
}

impl Passed<'_> {
    /// By a counter of the engine, each second.
    fn packets(&self, name: &str) -> String {
        rate(self.now.counter(name).wrapping_sub(self.then.counter(name)), self.seconds)
    }

    /// By a counter of bytes of the backend.
    fn gbps(&self, name: &str) -> String {
        let bytes = self.now.interface_counter(name).wrapping_sub(self.then.interface_counter(name));
        format!("{:.2}", gbps(bytes, self.seconds))
    }
}

/// Every counter of every endpoint; those that are 0 only if `zeros`.
pub(super) fn counters(endpoints: &[Endpoint], before: Option<Before<'_>>, zeros: bool) -> String {
    let each = endpoints.iter().map(|endpoint| one(endpoint, before, zeros));
    each.collect::<Vec<_>>().join("\n\n")
}

fn one(endpoint: &Endpoint, before: Option<Before<'_>>, zeros: bool) -> String {
    let Endpoint { interface, port, pid, backend, gid, command, .. } = endpoint;
    let earlier = before.and_then(|before| Some((before.of(endpoint)?, before.seconds)));
    let mut lines =
        vec![format!("{interface} port {port}: process {pid} (uroce {command}), {backend}, GID {gid}")];
    let device = earlier.map(|(then, seconds)| (&then.counters, seconds));
    lines.push(section("device", &endpoint.counters, device, zeros));
    let backend = earlier.map(|(then, seconds)| (&then.interface_counters, seconds));
    lines.push(section("interface", &endpoint.interface_counters, backend, zeros));
    for qp in &endpoint.queue_pairs {
        let then = earlier.and_then(|(then, seconds)| Some((&earlier_qp(then, qp)?.counters, seconds)));
        let QueuePairStat { qpn, service, state, .. } = qp;
        lines.push(section(&format!("QP {qpn:#08x} {service} {state}"), &qp.counters, then, false));
    }
    lines.join("\n")
}

fn earlier_qp<'a>(then: &'a Endpoint, qp: &QueuePairStat) -> Option<&'a QueuePairStat> {
    then.queue_pairs.iter().find(|earlier| earlier.qpn == qp.qpn)
}

/// A heading and its counters; with what was before: the difference and the rate, too.
fn section(title: &str, now: &Counts, then: Option<(&Counts, f64)>, zeros: bool) -> String {
    use Align::{Left, Right};
    let mut table = Table::new([("", Left), ("", Left), ("", Right), ("", Right), ("", Right)]);
    for (name, &count) in now.iter().filter(|(_, count)| zeros || **count > 0) {
        let [more, each_second] = then.map_or_else(Default::default, |(then, seconds)| {
            let more = count.wrapping_sub(then.get(name).copied().unwrap_or(0));
            if more == 0 {
                Default::default()
            } else {
                [format!("+{more}"), format!("{}/s", rate(more, seconds))]
            }
        });
        table.row([String::from("   "), name.clone(), count.to_string(), more, each_second]);
    }
    let rows = table.to_string();
    if rows.is_empty() { format!("  {title}: nothing yet") } else { format!("  {title}\n{rows}") }
}

fn rate(count: u64, seconds: f64) -> String {
    format!("{:.0}", count as f64 / seconds.max(f64::MIN_POSITIVE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(sent: u64) -> Endpoint {
        let counts = |name: &str, count| Counts::from([(name.to_owned(), count), ("zero".to_owned(), 0)]);
        let qp = QueuePairStat {
            qpn: 0x11,
            service: "RC".into(),
            state: "RTS".into(),
            counters: Counts::from([("sent_pkts".to_owned(), sent)]),
        };
        Endpoint {
            pid: 9,
            number: 0,
            command: "bw write eth0".into(),
            interface: "eth0".into(),
            port: 1,
            backend: "AF_PACKET".into(),
            gid: "::ffff:192.0.2.1".into(),
            counters: counts("sent_pkts", sent),
            interface_counters: counts("tx_bytes", sent * 1000),
            queue_pairs: vec![qp],
        }
    }

    #[test]
    fn a_list_has_a_line_for_each() {
        let expected = "\
PID  INTERFACE  BACKEND    GID               QPS  SENT  RECEIVED  COMMAND
  9  eth0       AF_PACKET  ::ffff:192.0.2.1    1    50         0  bw write eth0";
        assert_eq!(list(&[endpoint(50)]), expected);
    }

    #[test]
    fn counters_at_one_time() {
        let expected = "\
eth0 port 1: process 9 (uroce bw write eth0), AF_PACKET, GID ::ffff:192.0.2.1
  device
     sent_pkts  50
  interface
     tx_bytes  50000
  QP 0x000011 RC RTS
     sent_pkts  50";
        assert_eq!(counters(&[endpoint(50)], None, false), expected);
        assert!(counters(&[endpoint(50)], None, true).contains("zero"));
        assert!(counters(&[endpoint(0)], None, false).contains("  device: nothing yet\n"));
    }

    #[test]
    fn what_changed_has_its_difference_and_rate() {
        let (then, now) = ([endpoint(50)], [endpoint(150)]);
        let before = Before { endpoints: &then, seconds: 2.0 };
        let text = counters(&now, Some(before), false);
        assert!(text.contains("     sent_pkts  150  +100  50/s\n"), "{text}");
        let row = rates(&now, before);
        assert!(
            row.ends_with("  9  eth0         1      50  0.00           0  0.00        0  bw write eth0"),
            "{row}"
        );
        // One that has just started has no rate yet.
        let unknown = Before { endpoints: &[], seconds: 2.0 };
        assert!(counters(&now, Some(unknown), false).contains("     sent_pkts  150\n"));
    }
}
