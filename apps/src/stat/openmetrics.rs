//! Counters as OpenMetrics text, for Prometheus and whatever reads its format.
//!
//! Device and queue pairs are families of their own: a sum over one family counts nothing twice. All have the labels
//! `device`, `port`, `pid` and `endpoint` (which of the process's devices), those of queue pairs also `qp` and `service`.

use std::collections::BTreeSet;
use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use super::document::{Counts, Endpoint, QueuePairStat};
use crate::error::{Failure, Result};

/// What an answer says that it is.
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All endpoints at one time.
pub(super) fn text(endpoints: Vec<Endpoint>) -> Result<String> {
    let mut registry = Registry::with_prefix("uroce");
    registry.register_collector(Box::new(Snapshot(endpoints)));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry)
        .map_err(|error| Failure::new(format!("cannot write OpenMetrics: {error}")))?;
    Ok(text)
}

#[derive(Debug)]
struct Snapshot(Vec<Endpoint>);

/// Labels of one sample.
type Labels = Vec<(&'static str, String)>;

/// Something that is counted, and where.
type Counted<'a> = (Labels, &'a Counts);

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let endpoints = &self.0;
        gauge(&mut encoder, "endpoints", "Devices that are open", &[(Labels::new(), endpoints.len())])?;
        information(&mut encoder, endpoints)?;
        let queue_pairs: Vec<_> = endpoints.iter().map(|one| (device(one), one.queue_pairs.len())).collect();
        gauge(&mut encoder, "queue_pairs", "Queue pairs of the device that are shown", &queue_pairs)?;
        let engine: Vec<Counted<'_>> = endpoints.iter().map(|one| (device(one), &one.counters)).collect();
        counters(&mut encoder, "port", "of the device's engine", &engine)?;
        let backend: Vec<Counted<'_>> =
            endpoints.iter().map(|one| (device(one), &one.interface_counters)).collect();
        counters(&mut encoder, "interface", "of the way that frames take", &backend)?;
        let each = endpoints.iter().flat_map(|one| one.queue_pairs.iter().map(move |qp| (one, qp)));
        let each: Vec<Counted<'_>> = each.map(|(one, qp)| (queue_pair(one, qp), &qp.counters)).collect();
        counters(&mut encoder, "qp", "of one queue pair; absent while it is 0", &each)
    }
}

fn device(endpoint: &Endpoint) -> Labels {
    vec![
        ("device", endpoint.interface.clone()),
        ("port", endpoint.port.to_string()),
        ("pid", endpoint.pid.to_string()),
        ("endpoint", endpoint.number.to_string()),
    ]
}

fn queue_pair(endpoint: &Endpoint, qp: &QueuePairStat) -> Labels {
    let mut labels = device(endpoint);
    labels.extend([("qp", format!("{:#08x}", qp.qpn)), ("service", qp.service.clone())]);
    labels
}

fn information(encoder: &mut DescriptorEncoder<'_>, endpoints: &[Endpoint]) -> fmt::Result {
    let mut family = encoder.encode_descriptor("endpoint", "What the device is", None, MetricType::Info)?;
    for endpoint in endpoints {
        let mut labels = device(endpoint);
        labels.push(("backend", endpoint.backend.clone()));
        labels.push(("gid", endpoint.gid.clone()));
        family.encode_info(&labels)?;
    }
    Ok(())
}

fn gauge(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    samples: &[(Labels, usize)],
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (labels, value) in samples {
        family.encode_family(labels)?.encode_gauge(&i64::try_from(*value).unwrap_or(i64::MAX))?;
    }
    Ok(())
}

/// A family for each name that any of `all` counts.
fn counters(encoder: &mut DescriptorEncoder<'_>, of: &str, help: &str, all: &[Counted<'_>]) -> fmt::Result {
    let names: BTreeSet<&String> = all.iter().flat_map(|(_, counts)| counts.keys()).collect();
    for name in names {
        let family = format!("{of}_{name}");
        let help = format!("Counter {name} {help}");
        let mut family = encoder.encode_descriptor(&family, &help, None, MetricType::Counter)?;
        for (labels, counts) in all {
            let Some(value) = counts.get(name) else { continue };
            family.encode_family(labels)?.encode_counter::<NoLabelSet, _, u64>(value, None)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint() -> Endpoint {
        let counts = |count| Counts::from([("sent_pkts".to_owned(), count)]);
        let qp = |qpn| QueuePairStat {
            qpn,
            service: "RC".into(),
            counters: counts(u64::from(qpn)),
            ..QueuePairStat::default()
        };
        Endpoint {
            pid: 9,
            interface: "eth0".into(),
            port: 1,
            backend: "AF_XDP \"native\"".into(),
            counters: counts(30),
            interface_counters: Counts::from([("tx_frames".to_owned(), 31)]),
            queue_pairs: vec![qp(0x11), qp(0x12)],
            ..Endpoint::default()
        }
    }

    #[test]
    fn every_family_is_described_once_and_has_its_labels() {
        let text = text(vec![endpoint(), Endpoint { number: 1, ..endpoint() }]).unwrap();
        for line in [
            "uroce_endpoints 2",
            "# TYPE uroce_port_sent_pkts counter",
            r#"uroce_port_sent_pkts_total{device="eth0",port="1",pid="9",endpoint="0"} 30"#,
            r#"uroce_port_sent_pkts_total{device="eth0",port="1",pid="9",endpoint="1"} 30"#,
            r#"uroce_interface_tx_frames_total{device="eth0",port="1",pid="9",endpoint="0"} 31"#,
            r#"uroce_qp_sent_pkts_total{device="eth0",port="1",pid="9",endpoint="0",qp="0x000012",service="RC"} 18"#,
            r#"uroce_queue_pairs{device="eth0",port="1",pid="9",endpoint="0"} 2"#,
            r#"uroce_endpoint_info{device="eth0",port="1",pid="9",endpoint="0",backend="AF_XDP \"native\"",gid=""} 1"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        let mut samples: Vec<&str> =
            text.lines().filter_map(|line| line.rsplit_once(' ').map(|(key, _)| key)).collect();
        samples.retain(|key| !key.starts_with('#'));
        let all = samples.len();
        samples.sort_unstable();
        samples.dedup();
        assert_eq!(samples.len(), all, "a sample is there twice in\n{text}");
        let types = text.lines().filter(|line| line.starts_with("# TYPE uroce_port_sent_pkts "));
        assert_eq!(types.count(), 1, "{text}");
        assert!(text.ends_with("# EOF\n"), "{text}");
    }

    #[test]
    fn nobody_running_is_a_fact_too() {
        assert!(text(Vec::new()).unwrap().contains("uroce_endpoints 0"));
    }
}
