//! The measuring commands and the demo on the in-memory cable: no privilege, no network.

mod common;

use common::{positive, uroce};

#[test]
fn bandwidth_of_every_operation_has_its_figures() {
    for (op, size) in [("write", 65536), ("read", 65536), ("send", 4096), ("atomic", 8)] {
        let size_option = if op == "atomic" { String::new() } else { format!("-s {size}") };
        let report = uroce(&format!("bw {op} cable {size_option} -n 300 --json")).json();
        assert_eq!((report["op"].as_str(), report["size"].as_u64()), (Some(op), Some(size)), "{report}");
        assert_eq!(
            (report["mtu"].as_u64(), report["messages"].as_u64()),
            (Some(4096), Some(300)),
            "{report}"
        );
        assert_eq!(
            (report["qps"].as_u64(), report["backend"].as_str()),
            (Some(1), Some("cable")),
            "{report}"
        );
        positive(&report, &["seconds", "mmsgs", "gbps"]);
    }
}

#[test]
fn latency_of_every_operation_has_its_figures_in_order() {
    for op in ["write", "read", "send"] {
        for size in [1, 64, 65, 9000] {
            let report = uroce(&format!("lat {op} cable -s {size} -n 200 --json")).json();
            assert_eq!((report["op"].as_str(), report["size"].as_u64()), (Some(op), Some(size)), "{report}");
            assert_eq!(report["iterations"].as_u64(), Some(200), "{report}");
            let names = ["min_us", "p50_us", "p99_us", "p999_us", "max_us"];
            positive(&report, &names);
            let figures = names.map(|name| report[name].as_f64());
            assert!(figures.is_sorted(), "{report}");
        }
    }
}

#[test]
fn every_service_has_its_figures() {
    for (connection, command) in [
        ("RC", "bw send"),
        ("UC", "bw send"),
        ("UC", "bw write"),
        ("UD", "bw send"),
        ("UC", "lat write"),
        ("UC", "lat send"),
        ("UD", "lat send"),
    ] {
        let report = uroce(&format!("{command} cable -c {connection} -s 3000 -n 300 --json")).json();
        assert_eq!((&report["connection"], &report["size"]), (&connection.into(), &3000.into()), "{report}");
        positive(&report, &[if command.starts_with("bw") { "mmsgs" } else { "p50_us" }]);
        let counted = connection != "RC" && command == "bw send";
        assert_eq!(report["lost"].as_u64(), counted.then_some(0), "{report}");
    }
}

#[test]
fn datagrams_are_as_long_as_a_packet() {
    let report = uroce("bw send cable -c ud -n 100 --json").json();
    assert_eq!(
        (report["connection"].as_str(), report["size"].as_u64()),
        (Some("UD"), Some(1024)),
        "{report}"
    );
    uroce("bw send cable -c UD -s 4097").failed(1, &["4097 bytes do not fit a datagram", "-s 4096"]);
    uroce("bw send cable -c UD -m 1024 -s 1025").failed(1, &["-s 1024"]);
    let reports = uroce("bw send cable -c UD -m 1024 -a -n 9 --json").json();
    let sizes: Vec<u64> =
        reports.as_array().expect("an array").iter().filter_map(|row| row["size"].as_u64()).collect();
    assert_eq!(sizes, (1..=10).map(|power| 1 << power).collect::<Vec<u64>>());
}

#[test]
fn queue_pairs_may_share_their_receives() {
    for connection in ["RC", "UC", "UD"] {
        let options = "-q 4 -s 2000 -n 500 -t 16 -r 200";
        let report = uroce(&format!("bw send cable --use-srq -c {connection} {options} --json")).json();
        assert_eq!((report["messages"].as_u64(), report["qps"].as_u64()), (Some(2000), Some(4)), "{report}");
    }
}

#[test]
fn many_queue_pairs_share_the_messages() {
    for op in ["write", "send"] {
        let report = uroce(&format!("bw {op} cable -q 5 -s 3000 -n 333 -t 16 -m 1024 --json")).json();
        assert_eq!(report["messages"].as_u64(), Some(5 * 333), "{report}");
        assert_eq!((report["mtu"].as_u64(), report["qps"].as_u64()), (Some(1024), Some(5)), "{report}");
    }
}

#[test]
fn shallow_queues_and_seldom_completions_end() {
    for options in ["-t 1 -n 7", "-t 2 -Q 1 -n 9", "-t 100 -Q 50 -n 101", "-t 128 -Q 64 -n 1", "-D 0.05"] {
        let report = uroce(&format!("bw write cable -s 100 {options} --json")).json();
        positive(&report, &["messages"]);
    }
}

#[test]
fn all_sizes_make_one_row_each() {
    let reports = uroce("bw write cable -a -n 2 --json").json();
    let sizes: Vec<u64> =
        reports.as_array().expect("an array").iter().filter_map(|row| row["size"].as_u64()).collect();
    assert_eq!(sizes, (1..=23).map(|power| 1 << power).collect::<Vec<u64>>());
    let lines = uroce("lat send cable -a -n 2").good();
    assert_eq!(lines.lines().count(), 2 + 23, "{lines}");
}

#[test]
fn a_table_has_a_title_a_header_and_a_row() {
    let text = uroce("bw write cable -n 100").good();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("bw write: cable, path MTU 4096, RC, queue pairs 1"), "{text}");
    assert!(lines[1].ends_with("Mmsg/s") && lines[2].trim_start().starts_with("65536"), "{text}");
}

#[test]
fn the_demo_checks_every_operation() {
    let rows = uroce("demo --cable --json").json();
    let rows = rows.as_array().expect("an array");
    for op in
        ["SEND", "SEND with immediate", "WRITE", "WRITE with immediate", "READ", "CMP_SWAP", "FETCH_ADD"]
    {
        assert!(rows.iter().any(|row| row["op"] == op), "{op} is missing");
    }
    for row in rows {
        assert_eq!(row["verified"], row["messages"], "{row}");
        assert_eq!(row["backend"], "cable", "{row}");
        positive(row, &[if row["size"] == 8 { "lat_us" } else { "gbps" }]);
    }
    let table = uroce("demo --cable").good();
    assert!(table.starts_with("Over cable") && table.contains("\noperation"), "{table}");
    assert_eq!(table.lines().count(), 2 + rows.len(), "{table}");
}
