//! Every loop this CPU can run, against two other implementations.

use std::vec::Vec;
use std::{env, println, vec};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

use super::Crc;
use super::kernel::Kernel;
use super::pass::Pass;

const GUARD: u8 = 0xA5;
const ORACLE: crc::Crc<u32, crc::Table<16>> = crc::Crc::<u32, crc::Table<16>>::new(&crc::CRC_32_ISO_HDLC);

/// Seeded by the environment variable `UROCE_SEED`, if set; says its seed, which a failing test prints.
fn random() -> ChaCha8Rng {
    let seed = env::var("UROCE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("UROCE_SEED={seed}");
    ChaCha8Rng::seed_from_u64(seed)
}

fn below(random: &mut ChaCha8Rng, bound: usize) -> usize {
    random.next_u32() as usize % bound
}

/// Short ones as often as long ones: these hold most of the special cases.
fn length(random: &mut ChaCha8Rng) -> usize {
    let bound = [20, 300, 1200, 9000][below(random, 4)];
    below(random, bound)
}

/// The register, by a crate that shares no code with any loop here.
fn expected(register: u32, bytes: &[u8]) -> u32 {
    // The crate takes the register as it is before its own bit reversal.
    let mut digest = ORACLE.digest_with_initial(register.reverse_bits());
    digest.update(bytes);
    !digest.finalize()
}

fn by_crc32fast(register: u32, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(!register);
    hasher.update(bytes);
    !hasher.finalize()
}

#[test]
fn the_portable_loop_is_always_there() {
    assert!(Kernel::supported().count() > 0);
    assert_eq!(Kernel::supported().last(), Some(Kernel::best()));
}

#[test]
fn the_check_value_of_the_catalogue() {
    assert_eq!(Crc::new().update(b"123456789").finish(), 0xCBF4_3926);
    assert_eq!(Crc::default(), Crc::new());
}

#[test]
fn the_icrc_prefix_is_eight_bytes_of_ones() {
    assert_eq!(Crc::ICRC_PREFIX, Crc::new().update(&[0xFF; 8]));
}

#[test]
fn updates_compose() {
    let bytes: Vec<u8> = (0..=255).cycle().take(700).collect();
    for cut in 0..bytes.len() {
        let (first, second) = bytes.split_at(cut);
        assert_eq!(Crc::new().update(first).update(second), Crc::new().update(&bytes), "cut at {cut}");
    }
}

#[test]
fn every_length_agrees() {
    let bytes: Vec<u8> = (0..5000_u32).map(|at| ((at * at) >> 3) as u8).collect();
    for kernel in Kernel::supported() {
        for len in (0..1500).chain(4090..bytes.len()) {
            let crc = kernel.run(0x1234_5678, &mut Pass::reading(&bytes[..len]));
            assert_eq!(crc, expected(0x1234_5678, &bytes[..len]), "{kernel:?}, {len} bytes");
        }
    }
}

#[test]
fn random_passes_agree() {
    let mut random = random();
    let mut source = vec![0; 9100];
    random.fill_bytes(&mut source);
    for _ in 0..100_000 {
        let register = random.next_u32();
        let start = below(&mut random, 80);
        let bytes = &source[start..][..length(&mut random)];
        let crc = expected(register, bytes);
        assert_eq!(by_crc32fast(register, bytes), crc);
        for kernel in Kernel::supported() {
            assert_eq!(
                kernel.run(register, &mut Pass::reading(bytes)),
                crc,
                "{kernel:?}, {} bytes",
                bytes.len()
            );
            check_copy(kernel, register, bytes, crc, below(&mut random, 80));
        }
        source[start] = random.next_u32() as u8;
    }
}

/// Copies `bytes` to an offset of `before` bytes: they arrive, their CRC is right, and nothing else is written.
fn check_copy(kernel: Kernel, register: u32, bytes: &[u8], crc: u32, before: usize) {
    let mut room = vec![GUARD; before + bytes.len() + 80];
    let dst = &mut room[before..][..bytes.len()];
    // SAFETY: `bytes` is readable and apart from `room`.
    let mut pass = unsafe { Pass::copying(dst, bytes.as_ptr()) };
    assert_eq!(kernel.run(register, &mut pass), crc, "{kernel:?}, {} bytes to {before}", bytes.len());
    let (guard, rest) = room.split_at(before);
    let (copied, other_guard) = rest.split_at(bytes.len());
    assert_eq!(copied, bytes, "{kernel:?}");
    assert!(guard.iter().chain(other_guard).all(|byte| *byte == GUARD), "{kernel:?}, {} bytes", bytes.len());
}
