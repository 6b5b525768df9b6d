// What the bench computes from what it measured: a figure that is wrong silently is worse than none.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { difference } from '../../bench/clock.mjs';
import { OTHERS, price, priceElsewhere } from '../../bench/price.mjs';
import { block, item } from '../../bench/report.mjs';
import { startsOf } from '../../bench/scenarios/latency.mjs';
import { median, quantile, summary } from '../../bench/stats.mjs';
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
