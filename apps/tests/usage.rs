//! What is wrong with a command line, or with what it names, is said in one sentence.

mod common;

use common::uroce;

#[test]
fn wrong_usage_has_status_2() {
    for words in [
        "",
        "bandwidth",
        "bw",
        "bw write",
        "bw fetch cable",
        "lat atomic cable",
        "bw write cable -s 0",
        "bw write cable -s 3G",
        "bw write cable -m 1500",
        "bw write cable -n 5 -D 1",
        "bw write cable -s 8 -a",
        "bw write cable -q 0",
        "pingpong",
        "devinfo",
        "pingpong eth0 -m 9000",
        "pingpong eth0 --uc --ud",
        "pingpong eth0 --srq -q 256",
        "pingpong eth0 --ud -m 1024",
        "bw send cable -c XRC",
        "bw send cable --cm",
        "bw send eth0 --cm -m 1024",
        "ping eth0 -S 25",
        "ping eth0 -c",
        "ping eth0 192.0.2.1 -s",
        "serve eth0 --size 0",
        "serve eth0 --write",
        "serve eth0 --allow 10.0.0.0/33",
        "get eth0 192.0.2.1 --json",
        "cas eth0 192.0.2.1 4 0 1",
        "stat --watch 0",
        "stat --serve nowhere",
        "stat --serve --json",
    ] {
        let ended = uroce(words);
        assert_eq!(ended.status.code(), Some(2), "{words}: {ended:#?}");
    }
}

#[test]
fn what_cannot_be_is_wrong_usage_too() {
    uroce("bw write cable 192.0.2.1").failed(2, &["no HOST"]);
    uroce("bw atomic cable -s 16").failed(2, &["8 bytes"]);
    uroce("bw write cable -D 0").failed(2, &["0.01"]);
    uroce("bw read cable -c UC").failed(2, &["UC has no read"]);
    uroce("lat write cable -c UD").failed(2, &["UD has no write"]);
    uroce("bw write cable --use-srq").failed(2, &["leave --use-srq away"]);
    uroce("pingpong eth0 -q 4").failed(2, &["only --srq"]);
    uroce("pingpong eth0 --srq -r 8").failed(2, &["8 receives are too few for 16 queue pairs"]);
}

#[test]
fn an_unknown_interface_is_named() {
    for words in [
        "bw write nix0",
        "bw write nix0 192.0.2.1",
        "lat read nix0",
        "pingpong nix0",
        "devinfo nix0",
        "doctor nix0",
    ] {
        uroce(words).failed(1, &["no network interface named nix0", "ip link"]);
    }
}

#[test]
fn an_interface_without_ethernet_is_refused() {
    for words in ["bw write lo", "pingpong lo", "devinfo lo", "doctor lo"] {
        uroce(words).failed(1, &["lo is not an Ethernet interface"]);
    }
}

#[test]
fn help_has_examples() {
    for words in [
        "--help",
        "bw --help",
        "lat --help",
        "pingpong --help",
        "demo --help",
        "doctor --help",
        "devinfo --help",
        "stat --help",
        "ping --help",
        "serve --help",
        "get --help",
        "put --help",
        "cas --help",
    ] {
        let text = uroce(words).good();
        assert!(text.contains("Example") && text.contains("uroce"), "{words}: {text}");
        assert!(!text.contains("demo-peer"), "{words}: {text}");
    }
    assert!(uroce("--version").good().starts_with("uroce "));
}

#[test]
fn output_that_nobody_reads_is_no_panic() {
    let shell = format!("{} lat write cable -a -n 50 | true", common::PROGRAM);
    let output = std::process::Command::new("sh").args(["-c", &shell]).output().expect("a shell");
    assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"), "{output:?}");
}
