// The development server is kept running. Here with a stand-in for wrangler; start.test.mjs has the real one.
import assert from 'node:assert/strict';
import { describe, it, mock } from 'node:test';
import { keepDevelopment } from '../../examples/dev/keep.mjs';

const settled = () => new Promise((resolve) => setImmediate(resolve));

/** Starts that a test ends by hand. */
function standIn() {
  const starts = [];
  const start = (args) => {
    const run = { args };
    run.ended = new Promise((resolve) => {
      run.end = resolve;
    });
    run.ready = new Promise((resolve, reject) => {
      run.serve = () => resolve('http://localhost:8123');
      run.ended.then((code) => reject(new Error(`ended with ${code}`)));
    });
    run.stop = async () => run.end(143);
    starts.push(run);
    return run;
  };
  return { start, starts };
}

describe('a development server', () => {
  it('that ends by itself is started again at its port', async (t) => {
    t.mock.timers.enable({ apis: ['Date'] });
    const { start, starts } = standIn();
    const kept = keepDevelopment(['--port', '0', '--var', 'A:1'], mock.fn(), {}, start);
    for (let turn = 0; turn < 5; turn++) {
      starts[turn].serve();
      await settled();
      t.mock.timers.tick(5_000);
      starts[turn].end(1);
      await settled();
    }
    assert.equal(await kept.ready, 'http://localhost:8123');
    assert.deepEqual(
      starts.slice(1).map(({ args }) => args),
      Array(5).fill(['--var', 'A:1', '--port', '8123']),
    );
    await kept.stop();
    assert.equal(await kept.ended, 143);
    assert.equal(starts.length, 6);
  });

  it('that was never ready is not started again', async () => {
    const { start, starts } = standIn();
    const kept = keepDevelopment([], mock.fn(), {}, start);
    starts[0].end(1);
    await assert.rejects(kept.ready);
    assert.equal(await kept.ended, 1);
    assert.equal(starts.length, 1);
  });

  it('that ends again and again at once is given up', async () => {
    const { start, starts } = standIn();
    const kept = keepDevelopment(['--port=8123'], mock.fn(), {}, start);
    for (let turn = 0; turn < 3; turn++) {
      starts[turn].serve();
      await settled();
      starts[turn].end(7);
      await settled();
    }
    assert.equal(await kept.ended, 7);
    assert.equal(starts.length, 3);
  });
});
