//! Servers and clients on the in-memory cable.

use std::sync::atomic::{AtomicBool, Ordering};

use uroce::Drive;

use super::clients::{News, Rules};
use super::memory::Memory;
use super::put::Source;
use super::remote::{CHUNK, Remote, SLOTS};
use super::{PORT, cas, get, put, serve};
use crate::cm::Listener;
use crate::device::{Device, cable_pair};
use crate::error::{Failure, Result};

const SERVER: &str = "192.0.2.2";

/// Runs `body` with a device from which a server of `memory` is reached; returns what the server told, which comes once
/// all clients have gone.
fn served(memory: &Memory, rules: Rules, body: impl FnOnce(&Device)) -> Vec<News> {
    let (left, right) = cable_pair(Drive::default(), Drive::default()).unwrap();
    let listener = Listener::bind(&right, ([0; 4], PORT).into()).unwrap();
    let done = AtomicBool::new(false);
    let mut told = Vec::new();
    let mut tell = |news: News| -> Result<()> {
        // The last client comes after all others have gone.
        let over = done.load(Ordering::Acquire) && news.event == "connected";
        told.push(news);
        if over { Err(Failure::PeerGone) } else { Ok(()) }
    };
    std::thread::scope(|scope| {
        let server = scope.spawn(|| serve::serve(&right, &listener, memory, rules, &mut tell));
        body(&left);
        done.store(true, Ordering::Release);
        // One that comes and goes tells the server to end.
        let last = Remote::connect(&left, SERVER, PORT);
        drop(last);
        assert!(matches!(server.join().unwrap(), Err(Failure::PeerGone)));
    });
    told
}

fn rules() -> Rules {
    Rules { allowed: Vec::new(), most: 8 }
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index * 31 + index / 251) as u8).collect()
}

fn fetched(remote: &mut Remote, offset: u64, length: Option<u64>) -> Vec<u8> {
    let part = remote.part(offset, length).unwrap();
    let mut data = Vec::new();
    get::fetch(remote, part, &mut data, false).unwrap();
    data
}

fn sent(remote: &mut Remote, offset: u64, data: Vec<u8>) -> Result<u64> {
    put::send(remote, offset, &mut Source::new(std::io::Cursor::new(data), None), false)
        .map(|rate| rate.bytes)
}

#[test]
fn what_was_put_is_got_whatever_its_length() {
    let room = 3 * SLOTS * CHUNK;
    let memory = Memory::anonymous(room as u64).unwrap();
    let told = served(&memory, rules(), |ctx| {
        for length in [0, 1, CHUNK - 1, CHUNK, SLOTS * CHUNK + 1, 2 * SLOTS * CHUNK + 77] {
            let mut remote = Remote::connect(ctx, SERVER, PORT).unwrap();
            let data = pattern(length);
            assert_eq!(sent(&mut remote, 5, data.clone()).unwrap(), length as u64);
            assert_eq!(fetched(&mut remote, 5, Some(length as u64)), data);
            remote.close().unwrap();
        }
        let mut remote = Remote::connect(ctx, SERVER, PORT).unwrap();
        assert_eq!(fetched(&mut remote, 0, None).len(), room);
    });
    let writes: u64 = told.iter().filter_map(|news| news.work.map(|work| work.writes)).sum();
    assert!(writes >= 5, "{told:#?}");
    assert!(told.iter().filter(|news| news.event == "connected").count() >= 7, "{told:#?}");
}

#[test]
fn words_are_compared_and_swapped() {
    let memory = Memory::anonymous(64).unwrap();
    served(&memory, rules(), |ctx| {
        let mut remote = Remote::connect(ctx, SERVER, PORT).unwrap();
        assert_eq!(cas::swap(&mut remote, 56, 0, u64::MAX).unwrap(), 0);
        assert_eq!(cas::swap(&mut remote, 56, 0, 7).unwrap(), u64::MAX);
        assert_eq!(fetched(&mut remote, 56, None), [0xff; 8]);
        let beyond = cas::swap(&mut remote, 64, 0, 7).unwrap_err().to_string();
        assert!(beyond.contains("out of bounds"), "{beyond}");
    });
}

#[test]
fn what_is_out_of_bounds_is_refused_on_either_side() {
    let memory = Memory::anonymous(4096).unwrap();
    let told = served(&memory, rules(), |ctx| {
        let mut remote = Remote::connect(ctx, SERVER, PORT).unwrap();
        for (offset, length) in [(4096, Some(1)), (4096, None), (0, Some(4097)), (u64::MAX, Some(2))] {
            let said = remote.part(offset, length).unwrap_err().to_string();
            assert!(said.contains("out of bounds") && said.contains("4096 bytes"), "{said}");
        }
        assert!(sent(&mut remote, 4000, pattern(97)).unwrap_err().to_string().contains("out of bounds"));
        // A client that does not know better is refused by the server.
        remote.card.memory.len = 1 << 20;
        let said = sent(&mut remote, 4000, pattern(97)).unwrap_err().to_string();
        assert!(said.contains("the server refused the access"), "{said}");
    });
    assert!(told.iter().any(|news| news.work.is_some_and(|work| work.refused == 1)), "{told:#?}");
}

#[test]
fn a_file_for_reading_is_only_read() {
    let path = std::env::temp_dir().join(format!("uroce-export-{}", std::process::id()));
    let data = pattern(100_001);
    std::fs::write(&path, &data).unwrap();
    let memory = Memory::file(&path, false).unwrap();
    served(&memory, rules(), |ctx| {
        let mut remote = Remote::connect(ctx, SERVER, PORT).unwrap();
        assert_eq!(fetched(&mut remote, 0, None), data);
        assert!(remote.check_writable().unwrap_err().to_string().contains("--write"));
        // A client that does not care is refused by the server.
        remote.card.writable = true;
        let said = sent(&mut remote, 0, pattern(8)).unwrap_err().to_string();
        assert!(said.contains("the server refused the access"), "{said}");
    });
    drop(memory);
    assert_eq!(std::fs::read(&path).unwrap(), data);
    let memory = Memory::file(&path, true).unwrap();
    served(&memory, rules(), |ctx| {
        let mut remote = Remote::connect(ctx, SERVER, PORT).unwrap();
        assert_eq!(sent(&mut remote, 1, vec![0; 8]).unwrap(), 8);
    });
    drop(memory);
    let written = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(
        (&written[..10], &written[10..]),
        (&[data[0], 0, 0, 0, 0, 0, 0, 0, 0, data[9]][..], &data[10..])
    );
}

#[test]
fn there_is_room_for_so_many() {
    let memory = Memory::anonymous(64).unwrap();
    let told = served(&memory, Rules { most: 2, ..rules() }, |ctx| {
        let first = Remote::connect(ctx, SERVER, PORT).unwrap();
        let second = Remote::connect(ctx, SERVER, PORT).unwrap();
        let refused = Remote::connect(ctx, SERVER, PORT).map(drop).unwrap_err().to_string();
        assert!(refused.contains("all 2 places of the server are taken"), "{refused}");
        first.close().unwrap();
        second.close().unwrap();
    });
    assert!(told.iter().any(|news| news.event == "refused" && news.clients == 2), "{told:#?}");
}

#[test]
fn files_that_cannot_be_shown_are_told() {
    let said = |path: &str| Memory::file(path.as_ref(), false).unwrap_err().to_string();
    assert!(said("/nonexistent/file").contains("cannot open /nonexistent/file"));
    assert!(said("/").contains("no plain file"));
}
