//! Two processes in two network namespaces. Needs root and AF_XDP; says loudly when it cannot run.
#![cfg(feature = "af-xdp")]

mod common;

use std::time::Duration;

use common::{Ended, Running, is_attached, one_at_a_time, pause, positive, serve_in, start_in, uroce_in};
use uroce_nic::testing::{VethPair, skip};

/// Carries path MTU 4096.
const JUMBO: u32 = 4200;
const ETHERNET: u32 = 1500;
const V4: &str = "10.77.0.1";
const V6: &str = "fd77::1";

/// Runs a test with a link between two namespaces, and sees to it that nothing stays attached.
fn with_link(test: &str, mtu: u32, body: impl FnOnce(&VethPair)) {
    let _alone = one_at_a_time();
    let pair = match common::link(mtu) {
        Ok(pair) => pair,
        Err(reason) => return skip(&format_args!("{test}: {reason}")),
    };
    body(&pair);
    assert!(!is_attached(&pair.left) && !is_attached(&pair.right), "an XDP program stayed attached");
}

/// Runs server and client of one command, the server on the left; returns what both came to.
fn both(pair: &VethPair, command: &str, host: &str, options: &str) -> [Ended; 2] {
    let server = serve_in(&pair.left, &format!("{command} eth0 {options}"));
    let client = uroce_in(&pair.right, &format!("{command} eth0 {host} {options}"));
    finish(server, client)
}

/// Waits for the server, too; what both said is shown if the test fails.
fn finish(server: Running, client: Ended) -> [Ended; 2] {
    let ends = [server.wait(), client];
    println!("server and client: {ends:#?}");
    ends
}

#[test]
fn pingpong_over_ipv4_and_ipv6() {
    with_link("pingpong_over_ipv4_and_ipv6", ETHERNET, |pair| {
        for (host, gid, shown) in [(V4, 1, "::ffff:10.77.0.1"), (V6, 2, "fd77::1"), (V4, 0, "fe80::")] {
            for more in ["", "-e"] {
                let options = format!("-c -n 200 -s 5000 -g {gid} {more}");
                let [server, client] = both(pair, "pingpong", host, &options);
                let text = client.good();
                let lines: Vec<&str> = text.lines().collect();
                assert!(lines[0].starts_with("  local address:  LID 0x0000, QPN 0x"), "{text}");
                assert!(
                    lines[1].starts_with("  remote address: LID 0x0000") && lines[1].contains(shown),
                    "{text}"
                );
                assert!(
                    lines[2].starts_with("2000000 bytes in ") && lines[2].ends_with(" Mbit/sec"),
                    "{text}"
                );
                assert!(lines[3].starts_with("200 iters in ") && lines[3].ends_with(" usec/iter"), "{text}");
                assert!(server.good().contains("200 iters"));
            }
        }
    });
}

#[test]
fn pingpong_of_every_service() {
    with_link("pingpong_of_every_service", ETHERNET, |pair| {
        for (service, size, connection, qps) in [
            ("--uc", 5000, "UC", 1),
            ("--ud", 1000, "UD", 1),
            ("--srq", 3000, "RC", 16),
            ("--srq -q 3", 1, "RC", 3),
        ] {
            for (host, more) in [(V4, ""), (V6, "-g 2"), (V4, "-e -c")] {
                let options = format!("{service} -s {size} -n 200 {more} --json");
                let [server, client] = both(pair, "pingpong", host, &options);
                for figures in [server.json(), client.json()] {
                    assert_eq!(
                        (
                            figures["connection"].as_str(),
                            figures["qps"].as_u64(),
                            figures["iterations"].as_u64()
                        ),
                        (Some(connection), Some(qps), Some(200)),
                        "{figures}"
                    );
                    assert_eq!(figures["srq"].as_bool(), Some(service.starts_with("--srq")), "{figures}");
                }
            }
        }
    });
}

#[test]
fn pingpong_shows_every_queue_pair() {
    with_link("pingpong_shows_every_queue_pair", ETHERNET, |pair| {
        let [_, client] = both(pair, "pingpong", V4, "--srq -q 5 -n 50");
        let text = client.good();
        for whose in ["  local address:", "  remote address:"] {
            assert_eq!(text.lines().filter(|line| line.starts_with(whose)).count(), 5, "{text}");
        }
        assert_eq!(text.lines().count(), 12, "{text}");
    });
}

#[test]
fn pingpong_programs_that_differ_are_told() {
    with_link("pingpong_programs_that_differ_are_told", ETHERNET, |pair| {
        let server = serve_in(&pair.left, "pingpong eth0 --srq -q 4");
        let client = uroce_in(&pair.right, &format!("pingpong eth0 {V4} --srq -q 3"));
        let [server, client] = finish(server, client);
        server.failed(1, &["the peer has 3 queue pairs and we have 4", "-q"]);
        client.failed(1, &["peer"]);
        uroce_in(&pair.left, "pingpong eth0 --ud")
            .failed(1, &["2048 bytes do not fit a datagram", "-s 1024"]);
    });
}

#[test]
fn pingpong_notices_wrong_pages_of_datagrams() {
    with_link("pingpong_notices_wrong_pages_of_datagrams", ETHERNET, |pair| {
        let server = serve_in(&pair.left, "pingpong eth0 --ud -c -n 10 -s 64");
        uroce_in(&pair.right, &format!("pingpong eth0 {V4} --ud -n 10 -s 64")).good();
        server.wait().failed(1, &["invalid data in 1 of the pages", "page 0", "-c"]);
    });
}

#[test]
fn pingpong_notices_wrong_pages() {
    with_link("pingpong_notices_wrong_pages", ETHERNET, |pair| {
        let server = serve_in(&pair.left, "pingpong eth0 -c -n 10 -s 9000");
        uroce_in(&pair.right, &format!("pingpong eth0 {V4} -n 10 -s 9000")).good();
        server.wait().failed(1, &["invalid data in 3 of the pages", "page 0", "-c"]);
    });
}

#[test]
fn bandwidth_between_two_processes() {
    with_link("bandwidth_between_two_processes", JUMBO, |pair| {
        for op in ["write", "read", "send", "atomic"] {
            let [server, client] = both(pair, &format!("bw {op}"), V4, "-n 500 --json");
            let report = client.json();
            assert_eq!(
                (report["mtu"].as_u64(), report["messages"].as_u64()),
                (Some(4096), Some(500)),
                "{report}"
            );
            assert!(
                report["backend"].as_str().is_some_and(|backend| backend.starts_with("AF_XDP")),
                "{report}"
            );
            positive(&report, &["mmsgs", "seconds"]);
            assert_eq!(server.json(), report);
        }
    });
}

#[test]
fn unreliable_services_between_two_processes() {
    with_link("unreliable_services_between_two_processes", JUMBO, |pair| {
        for (command, connection) in [
            ("bw write", "UC"),
            ("bw send", "UC"),
            ("bw send", "UD"),
            ("lat write", "UC"),
            ("lat send", "UD"),
        ] {
            let options = format!("-c {connection} -s 2000 -n 300 -r 1024 --json");
            let options = if command.starts_with("lat") { options.replace("-r 1024", "") } else { options };
            let [server, client] = both(pair, command, V4, &options);
            let report = client.json();
            assert_eq!(report["connection"].as_str(), Some(connection), "{report}");
            // What is lost is lost at the receiver, which may be slow; it is counted all the same.
            assert_eq!(report["lost"].is_u64(), command == "bw send", "{report}");
            assert_eq!(server.json(), report);
        }
        let server = serve_in(&pair.left, "bw send eth0");
        let client = uroce_in(&pair.right, &format!("bw send eth0 {V4} -c UD"));
        let [server, client] = finish(server, client);
        server.failed(1, &["the server was told -c RC, the client -c UD"]);
        client.failed(1, &["the server was told -c RC, the client -c UD"]);
    });
}

#[test]
fn latency_between_two_processes() {
    with_link("latency_between_two_processes", JUMBO, |pair| {
        for op in ["write", "read", "send"] {
            let [_, client] = both(pair, &format!("lat {op}"), V6, "-g 2 -n 500 -s 100 --json");
            positive(&client.json(), &["min_us", "p50_us", "p99_us"]);
        }
    });
}

#[test]
fn many_queue_pairs_and_sizes_between_two_processes() {
    with_link("many_queue_pairs_and_sizes_between_two_processes", ETHERNET, |pair| {
        let server = serve_in(&pair.left, "bw send eth0");
        let client = uroce_in(&pair.right, &format!("bw send eth0 {V4} -a -n 20 -q 3 --json"));
        let [server, client] = finish(server, client);
        assert_eq!(client.json().as_array().map(Vec::len), Some(23));
        assert_eq!(server.good().lines().count(), 2 + 23);
    });
}

#[test]
fn a_packet_socket_does_as_well() {
    with_link("a_packet_socket_does_as_well", ETHERNET, |pair| {
        let [_, client] = both(pair, "bw write", V4, "--backend packet -n 50 -s 10000 --json");
        let report = client.json();
        assert!(
            report["backend"].as_str().is_some_and(|backend| backend.starts_with("AF_PACKET")),
            "{report}"
        );
    });
}

#[test]
fn two_ends_that_disagree_say_so() {
    with_link("two_ends_that_disagree_say_so", ETHERNET, |pair| {
        let server = serve_in(&pair.left, "bw write eth0");
        uroce_in(&pair.right, &format!("bw read eth0 {V4}"))
            .failed(1, &["the peer refused", "uroce bw write"]);
        server.wait().failed(1, &["refused 10.77.0.2", "uroce bw read"]);
    });
}

#[test]
fn two_families_are_told_apart() {
    with_link("two_families_are_told_apart", ETHERNET, |pair| {
        for (command, clients) in [("bw write", "the peer refused"), ("pingpong", "the peer closed")] {
            let server = serve_in(&pair.left, &format!("{command} eth0 -g 2"));
            let client = uroce_in(&pair.right, &format!("{command} eth0 {V4}"));
            let [server, client] = finish(server, client);
            server.failed(1, &["fd77::1", "::ffff:10.77.0.2", "-g INDEX"]);
            client.failed(1, &[clients]);
        }
    });
}

#[test]
fn a_link_too_small_for_the_path_mtu_is_told() {
    with_link("a_link_too_small_for_the_path_mtu_is_told", ETHERNET, |pair| {
        for command in ["bw write", "lat read", "pingpong"] {
            uroce_in(&pair.left, &format!("{command} eth0 -m 4096"))
                .failed(1, &["path MTU 4096", "eth0", "1024", "mtu 4176"]);
        }
    });
}

#[test]
fn nobody_at_the_port_is_told() {
    with_link("nobody_at_the_port_is_told", ETHERNET, |pair| {
        for command in ["bw write", "lat write", "pingpong"] {
            uroce_in(&pair.right, &format!("{command} eth0 {V4}"))
                .failed(1, &["cannot reach 10.77.0.1", "start the server first"]);
        }
        uroce_in(&pair.right, "bw write eth0 198.51.100.1").failed(1, &["cannot reach 198.51.100.1"]);
    });
}

#[test]
fn a_queue_in_use_is_told() {
    with_link("a_queue_in_use_is_told", ETHERNET, |pair| {
        let first = serve_in(&pair.left, "bw write eth0");
        uroce_in(&pair.left, "bw write eth0 -p 18516").failed(1, &["eth0", "another"]);
        first.signal("INT");
        first.wait().failed(130, &["interrupted"]);
    });
}

#[test]
fn without_privilege_it_says_what_is_lacking() {
    with_link("without_privilege_it_says_what_is_lacking", ETHERNET, |pair| {
        let nobody = format!(
            "ip netns exec {} setpriv --reuid 65534 --regid 65534 --clear-groups {} bw write eth0",
            pair.left.name(),
            common::PROGRAM
        );
        let output = std::process::Command::new("sh").args(["-c", &nobody]).output().expect("a shell");
        let said = String::from_utf8_lossy(&output.stderr);
        // Where the program lies in a folder that only root may enter, it cannot even start.
        if said.contains("ermission denied") && !said.contains("uroce:") {
            return;
        }
        assert!(
            output.status.code() == Some(1) && said.contains("not permitted") && said.contains("setcap"),
            "{said}"
        );
    });
}

#[test]
fn a_peer_that_is_killed_is_noticed() {
    with_link("a_peer_that_is_killed_is_noticed", ETHERNET, |pair| {
        for command in ["bw write", "bw read", "bw send", "lat write", "lat read", "lat send"] {
            let server = serve_in(&pair.left, &format!("{command} eth0"));
            let client = start_in(&pair.right, &format!("{command} eth0 {V4} -D 50"));
            pause(Duration::from_millis(700));
            server.signal("KILL");
            client.wait().failed(1, &["peer"]);
            drop(server);
        }
    });
}

#[test]
fn a_pingpong_peer_that_is_killed_is_noticed() {
    with_link("a_pingpong_peer_that_is_killed_is_noticed", ETHERNET, |pair| {
        for dying in [0, 1] {
            let server = serve_in(&pair.left, "pingpong eth0 -n 100000000");
            let client = start_in(&pair.right, &format!("pingpong eth0 {V4} -n 100000000"));
            pause(Duration::from_millis(700));
            let mut ends = [server, client];
            ends[dying].signal("KILL");
            ends.swap(0, 1 - dying);
            let [survivor, _dead] = ends;
            survivor.wait().failed(1, &["peer"]);
        }
    });
}

#[test]
fn a_cut_cable_is_noticed_at_both_ends() {
    with_link("a_cut_cable_is_noticed_at_both_ends", ETHERNET, |pair| {
        for command in ["bw write", "lat write"] {
            let server = serve_in(&pair.left, &format!("{command} eth0"));
            let client = start_in(&pair.right, &format!("{command} eth0 {V4} -D 50"));
            pause(Duration::from_millis(700));
            pair.left.ip("link set eth0 down").expect("the link can be set down");
            client.wait().failed(1, &["eth0", "carrier"]);
            let server = server.wait();
            assert_eq!(server.status.code(), Some(1), "{server:?}");
            pair.left.ip("link set eth0 up").expect("the link can be set up");
            pause(Duration::from_millis(300));
        }
    });
}

#[test]
fn an_interrupt_detaches() {
    with_link("an_interrupt_detaches", ETHERNET, |pair| {
        let interrupted = |running: Running, signal| {
            running.signal(signal);
            running.wait().failed(130, &["interrupted"]);
        };
        interrupted(serve_in(&pair.left, "bw write eth0"), "INT");
        interrupted(serve_in(&pair.left, "pingpong eth0"), "TERM");
        let server = serve_in(&pair.left, "lat send eth0");
        let client = start_in(&pair.right, &format!("lat send eth0 {V4} -D 50"));
        pause(Duration::from_millis(700));
        assert!(is_attached(&pair.left) && is_attached(&pair.right));
        interrupted(client, "INT");
        server.wait().failed(1, &["the peer closed the connection"]);
    });
}

#[test]
fn the_doctor_and_devinfo_know_the_link() {
    with_link("the_doctor_and_devinfo_know_the_link", ETHERNET, |pair| {
        let findings = uroce_in(&pair.left, "doctor eth0 --json").json();
        let found = |check: &str| {
            let all = findings.as_array().expect("an array");
            all.iter()
                .find(|finding| finding["check"] == check)
                .unwrap_or_else(|| panic!("{check} in {findings}"))
                .clone()
        };
        for check in [
            "kernel",
            "privileges",
            "port 4791",
            "rdma_rxe",
            "link",
            "MTU",
            "queues",
            "addresses",
            "XDP mode",
        ] {
            assert!(found(check)["verdict"].is_string());
        }
        assert_eq!(found("MTU")["verdict"], "limit");
        assert!(
            found("addresses")["found"].as_str().is_some_and(|text| text.contains("GID 1 ::ffff:10.77.0.1"))
        );
        let text = uroce_in(&pair.left, "doctor").good();
        assert!(text.lines().last().is_some_and(|line| line.starts_with("uroce works here")), "{text}");
        let port = uroce_in(&pair.left, "devinfo eth0 --json").json();
        assert_eq!(
            (port["active_mtu"].as_u64(), port["state"].as_str()),
            (Some(1024), Some("PORT_ACTIVE (4)"))
        );
        assert_eq!(
            (&port["gids"][1]["gid"], &port["gids"][2]["gid"]),
            (&"::ffff:10.77.0.1".into(), &"fd77::1".into())
        );
    });
}

#[test]
fn the_doctor_says_what_does_not_work() {
    with_link("the_doctor_says_what_does_not_work", ETHERNET, |pair| {
        pair.left.ip("link set eth0 down").expect("the link can be set down");
        let ended = uroce_in(&pair.left, "doctor eth0");
        assert_eq!(ended.status.code(), Some(1), "{ended:?}");
        assert!(
            ended.stdout.contains("fails  eth0  link") && ended.stdout.contains("will not work"),
            "{ended:?}"
        );
    });
}

#[test]
fn the_demo_runs_in_its_own_namespaces_and_removes_them() {
    with_link("the_demo_runs_in_its_own_namespaces_and_removes_them", ETHERNET, |_| {
        let rows = common::uroce("demo --json").json();
        for row in rows.as_array().expect("an array") {
            assert_eq!(row["verified"], row["messages"], "{row}");
            assert!(row["backend"].as_str().is_some_and(|backend| backend.starts_with("AF_XDP")), "{row}");
        }
    });
}

#[test]
fn an_interrupted_demo_removes_its_namespaces() {
    with_link("an_interrupted_demo_removes_its_namespaces", ETHERNET, |_| {
        let demo = common::start_here("demo");
        pause(Duration::from_millis(500));
        let pid = demo.pid();
        demo.signal("INT");
        let ended = demo.wait();
        assert!(matches!(ended.status.code(), Some(0 | 130)), "{ended:?}");
        assert!(!common::namespaces().contains(&format!("uroce-{pid}-")), "a namespace stayed");
    });
}
