// What the bench computes from what it measured: a figure that is wrong silently is worse than none.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { difference } from '../../bench/clock.mjs';
import { OTHERS, price, priceElsewhere } from '../../bench/price.mjs';
import { block, item } from '../../bench/report.mjs';
import { startsOf } from '../../bench/scenarios/latency.mjs';
import { median, quantile, summary } from '../../bench/stats.mjs';
import { bad } from '../../bench/steady/bad.mjs';
import { descriptor, lines } from '../../bench/steady/contract.mjs';
import { Histogram } from '../../bench/steady/histogram.mjs';
import { trends } from '../../bench/steady/load.mjs';
import { cells, ratio } from '../../bench/table/figures.mjs';
import { LINES, plan } from '../../bench/table/lines.mjs';

describe('the figures of the bench', () => {
  it('are the middle one of three times', () => {
    assert.equal(median([30, 10, 20]), 20);
    assert.equal(median([1, 2, 3, 10]), 2.5);
    assert.equal(quantile([5, 1, 3], 0.5), 3);
  });

  it('are above 1 beside the best peer when ahead, whether more or less is better', () => {
    assert.equal(ratio('more', 300, [100, 150, undefined]), 2);
    assert.equal(ratio('less', 5, [10, 20]), 2);
    assert.equal(ratio('more', 300, [undefined]), undefined);
  });

  it('are compared by the part of a measure that a line shows', () => {
    const line = { title: 'p99', ours: 'start-pulled', peers: 'start', part: 'p99', better: 'less' };
    const of = (...values) => values.map((p99) => ({ p50: 1, p99 }));
    const samples = { tocsin: { 'start-pulled': of(8, 4, 6) }, bullmq: { start: of(3, 9, 3) } };
    const { figures, share, times } = cells(line, ['tocsin', 'bullmq'], samples);
    assert.deepEqual({ figures, share, times }, { figures: { tocsin: 6, bullmq: 3 }, share: '–', times: 0.5 });
  });

  it('leave out a percentile that too few samples have, and its line', () => {
    const { p50, p99 } = summary(Array.from({ length: 60 }, (_, n) => n));
    assert.deepEqual({ p50, p99 }, { p50: 29, p99: undefined });
    assert.equal(summary(Array.from({ length: 500 }, (_, n) => n)).p99, 494);
    const line = { title: 'p99', ours: 'start', peers: 'start', part: 'p99', better: 'less' };
    assert.equal(cells(line, ['tocsin'], { tocsin: { start: [{ p50, p99 }] } }).figures.tocsin, undefined);
  });

  it('are measured once each time, also those that several lines show', () => {
    const steps = plan(LINES, ['tocsin', 'floor', 'bullmq']).map(({ system, measure }) => `${system} ${measure}`);
    assert.equal(new Set(steps).size, steps.length);
    for (const step of ['tocsin library-64', 'tocsin http-64', 'floor single-64', 'bullmq single-64', 'bullmq start']) {
      assert.ok(steps.includes(step), step);
    }
  });
});

describe('a steady load', () => {
  it('is counted in buckets that are 0.8 % wide, however long it lasts', () => {
    const histogram = new Histogram();
    const values = Array.from({ length: 20_000 }, (_, n) => 0.01 * 1.0009 ** n);
    for (const value of values) histogram.record(value);
    for (const q of [0.001, 0.5, 0.95, 0.99, 0.999]) {
      const exact = values[Math.ceil(q * values.length) - 1];
      const found = histogram.quantile(q);
      assert.ok(found >= exact * 0.999 - 0.001 && found <= exact * 1.008 + 0.001, `${q}: ${found}, not ${exact}`);
    }
    assert.equal(histogram.quantile(1), values.at(-1));
    assert.ok(JSON.stringify(histogram).length < 40_000);
    const sum = new Histogram();
    sum.merge(histogram);
    sum.merge(JSON.parse(JSON.stringify(histogram)));
    assert.deepEqual([sum.total, sum.quantile(0.5)], [40_000, histogram.quantile(0.5)]);
    assert.ok(Number.isNaN(new Histogram().quantile(0.5)));
  });

  it('compares its last ten minutes to its first ones', () => {
    const sample = (second, ms, mb) => {
      const histogram = new Histogram();
      histogram.record(ms);
      return { second, histogram, rss_mb: mb, stored_mb: mb };
    };
    const samples = Array.from({ length: 30 }, (_, n) => sample((n + 1) * 60, n < 10 ? 4 : n < 20 ? 9 : 6, 100 + n));
    const { p99_last_to_first, rss_last_to_first } = trends(samples);
    assert.deepEqual([Math.round(p99_last_to_first * 10), rss_last_to_first], [15, 1.183]);
    assert.deepEqual(trends(samples.slice(0, 15)), {});
  });

  it('speaks the lines of the long-horizon contract', () => {
    const at = new Date(0);
    const sample = { claim_p50_ms: 3.2, queue_depth: 0, rss_mb: 1, phase: 'clean' };
    const [first, second, ...rest] = lines('pulled', sample, at)
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    const about = {
      t: '1970-01-01T00:00:00.000Z',
      system: 'pulled',
      kind: 'adapter',
      subject_kind: 'adapter',
      subject: '',
    };
    assert.deepEqual(first, { ...about, metric: 'claim_p50_ms', value: 3.2, window_s: 5, phase: 'clean' });
    assert.deepEqual([second.metric, rest], ['queue_depth', []]);
    assert.equal(JSON.parse(descriptor('pulled', at)).kind, 'descriptor');
  });

  it('has bad days, whose events happen while it lasts', () => {
    const kill = () => undefined;
    const { events } = bad({ kill }, { bad: 'runtime', seconds: 180, rate: 800 });
    assert.deepEqual(
      events.map(([second]) => second),
      [30, 95, 160],
    );
    const day = bad({ kill }, { bad: 'phases', seconds: 100, rate: 800 });
    assert.deepEqual([5, 35, 50, 65, 99].map(day.phaseAt), ['warm-up', 'clean', 'pressure', 'kill', 'recovery']);
    assert.deepEqual([day.rate(35), day.rate(50)], [800, 1_600]);
    assert.ok(Math.abs(day.events[0][0] - 60) < 1e-9);
  });
});

describe('the clock of another process', () => {
  // It is 5.3 ms ahead, and shows whole milliseconds; a message takes a quarter of one.
  const exchanges = Array.from({ length: 100 }, (_, n) => {
    const sentAt = 10 + n * 1.37;
    return { sentAt, noted: Math.floor(sentAt + 0.25 + 5.3), heardAt: sentAt + 0.5 };
  });

  it('is known within the time that the shortest exchange takes', () => {
    const { ahead, error } = difference(exchanges);
    assert.ok(Math.abs(ahead - 5.3) <= error && error <= 0.26, `${ahead} ± ${error}`);
  });

  it('is not trusted when it was set meanwhile', () => {
    const later = exchanges.map(({ noted, ...exchange }) => ({ ...exchange, noted: noted + 3 }));
    assert.throws(() => difference([...exchanges, ...later]), /was set/);
  });

  it('is read finer by a callback, but never leaves the millisecond that was noted', () => {
    const starts = [1.2, 2.9, 4.5, 7.05, 9.6];
    const samples = starts.map((at) => ({ from: Math.floor(at), seenAt: at + 0.3 }));
    for (const [n, at] of startsOf(samples).entries()) assert.ok(Math.abs(at - starts[n]) < 0.2, `${at} ${starts[n]}`);
    assert.equal(startsOf([...samples, { from: 11, seenAt: 19 }]).at(-1), 12);
  });
});

describe('the price of a job', () => {
  it('adds up its rows, its requests and the time for which it keeps its object awake', () => {
    const life = { written: 2, read: 100, objectRequests: 1, workerRequests: 1, ms: 1000 };
    assert.deepEqual(price(life), { rows: 2.1, requests: 0.45, duration: 1.6, total: 4.15 });
  });

  it('is known elsewhere for every kind', () => {
    const all = (kind) => OTHERS.map((service) => priceElsewhere(service, kind));
    assert.deepEqual(all('alone'), [1.2, 1.2, 0.8, 10]);
    assert.deepEqual(all('retry'), [1.6, 0.16, 1.2, 20]);
  });
});

describe('the text of the bench', () => {
  it('has columns that stand below each other, and headings of their own', () => {
    const text = block('Title', ['', 'a', 'b'], [['group'], ['one', '1', '–'], ['three', '1,000', '2']]);
    const [, , , ...lines] = text.split('\n');
    assert.deepEqual(lines.slice(0, 4), ['             a  b', 'group', '  one        1  –', '  three  1,000  2']);
  });

  it('has lines that a document may have', () => {
    const lines = item('word '.repeat(60).trim()).split('\n');
    assert.ok(lines.length > 1 && lines.every((line) => line.length <= 100));
    assert.match(lines[0], /^- word/);
    assert.match(lines[1], /^ {2}word/);
  });
});
