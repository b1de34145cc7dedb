//! The stack alone: both ends on one thread, frames handed over in memory.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use uroce_benches::{Pair, Work};
use uroce_stack::wire::Mtu;

/// Messages of one iteration.
const MESSAGES: u64 = 32;

fn stack(criterion: &mut Criterion) {
    for (name, work) in [("write", Work::Write), ("read", Work::Read), ("send", Work::Send)] {
        let mut group = criterion.benchmark_group(name);
        for size in [64, 4096, 65536] {
            let mut pair = Pair::new(Mtu::B4096, size);
            group.throughput(if size == 64 {
                Throughput::Elements(MESSAGES)
            } else {
                Throughput::BytesDecimal(MESSAGES * size as u64)
            });
            group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
                bencher.iter(|| pair.run(work, size, MESSAGES));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, stack);
criterion_main!(benches);
