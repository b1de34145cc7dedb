//! Copy and CRC beside memcpy and crc32fast: first each alone, then all in turn and their ratios.
//!
//! Nanoseconds tell of the machine, ratios of the code: both sides of a ratio are measured in the same run, in turn,
//! and by their best round, so that neither frequency nor neighbours count.

use std::hint::black_box;
use std::{env, slice};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group};
use uroce_benches::best_in_turn;
use uroce_stack::memory::{Crc, copy_in, copy_out};

const SIZES: [usize; 4] = [64, 256, 1024, 4096];

/// A source and a destination in the first-level cache, 64-byte aligned.
struct Buffers {
    src: Vec<u8>,
    dst: Vec<u8>,
    len: usize,
}

type Variant = (&'static str, fn(&mut Buffers));

/// The ratios name these by position.
const VARIANTS: [Variant; 6] = [
    ("memcpy", |buffers| memcpy(buffers)),
    ("crc32fast", |buffers| {
        black_box(crc32fast::hash(buffers.src()));
    }),
    ("memcpy_crc32fast", |buffers| {
        memcpy(buffers);
        black_box(crc32fast::hash(buffers.dst()));
    }),
    ("copy_out", |buffers| {
        let (src, dst) = (buffers.src().as_ptr(), buffers.dst());
        // SAFETY: both are as long, and apart.
        black_box(unsafe { copy_out(dst, src, Crc::new()) });
    }),
    ("update", |buffers| {
        black_box(Crc::new().update(buffers.src()));
    }),
    ("copy_in", |buffers| {
        let dst = buffers.dst().as_mut_ptr();
        // SAFETY: both are as long, and apart.
        unsafe { copy_in(dst, buffers.src()) };
    }),
];

impl Buffers {
    fn new(len: usize) -> Self {
        Self { src: (0..len + 64).map(|at| (at * 7) as u8).collect(), dst: vec![0; len + 64], len }
    }

    fn src(&self) -> &[u8] {
        let start = self.src.as_ptr().align_offset(64);
        let bytes = &self.src[start..][..self.len];
        // Address and length apart: together they would go through memory, at the price of a short copy.
        // SAFETY: the slice itself, hidden from the compiler.
        unsafe { slice::from_raw_parts(black_box(bytes.as_ptr()), black_box(bytes.len())) }
    }

    fn dst(&mut self) -> &mut [u8] {
        let start = self.dst.as_ptr().align_offset(64);
        let bytes = &mut self.dst[start..][..self.len];
        // SAFETY: as in `src`.
        unsafe { slice::from_raw_parts_mut(black_box(bytes.as_mut_ptr()), black_box(bytes.len())) }
    }
}

fn memcpy(buffers: &mut Buffers) {
    let src: *const [u8] = buffers.src();
    // SAFETY: apart from the destination, and borrowed with it.
    buffers.dst().copy_from_slice(unsafe { &*src });
}

fn copy_crc(criterion: &mut Criterion) {
    for (name, run) in VARIANTS {
        let mut group = criterion.benchmark_group(name);
        for len in SIZES {
            let mut buffers = Buffers::new(len);
            group.throughput(Throughput::BytesDecimal(len as u64));
            group.bench_function(BenchmarkId::from_parameter(len), |bencher| {
                bencher.iter(|| run(&mut buffers));
            });
        }
        group.finish();
    }
}

fn print_ratios() {
    println!("\nside by side, ns a call in the best round:");
    print!("{:>6}", "bytes");
    VARIANTS.iter().for_each(|(name, _)| print!(" {name:>16}"));
    println!("  copy_out/memcpy_crc32fast  update/crc32fast  copy_in/memcpy  copy_out/update");
    for len in SIZES {
        let ns = best_in_turn(&mut Buffers::new(len), VARIANTS.map(|(_, run)| run));
        let [memcpy, crc32fast, both, copy_out, update, copy_in] = ns;
        print!("{len:>6}");
        ns.iter().for_each(|ns| print!(" {ns:>16.1}"));
        print!("  {:>25.2}  {:>16.2}", copy_out / both, update / crc32fast);
        println!("  {:>14.2}  {:>15.2}", copy_in / memcpy, copy_out / update);
    }
}

criterion_group!(benches, copy_crc);

fn main() {
    benches();
    Criterion::default().configure_from_args().final_summary();
    if !env::args().any(|arg| arg == "--test" || arg == "--list") {
        print_ratios();
    }
}
