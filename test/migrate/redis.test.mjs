// How `tocsin migrate` reads Redis: large answers, pages, passwords, and what others take meanwhile.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { load } from '../cli/cli.mjs';
import { lacksRedis, leftOut, redis, typed } from './kit.mjs';

const lacking = lacksRedis();

describe('reading Redis', { skip: lacking && leftOut('Reading Redis', lacking), timeout: 900_000 }, () => {
  let source;
  let reader;
  let Redis;

  before(async () => {
    source = await redis();
    ({ Redis } = await load('migrate/redis.ts'));
    reader = await Redis.open(`${source.url}/3`);
  });

  after(async () => {
    reader?.close();
    await source?.close();
  });

  /** Commands in database 3, as they are typed. */
  const type = (...lines) => typed(source.port, ['SELECT 3', ...lines]);
  const all = async (pages) => {
    const read = [];
    for await (const page of pages) read.push(page);
    return read.flat();
  };

  it('reads a list from its old end, a set by its scores, and hashes, whatever is in them', async () => {
    await type('LPUSH list a "b c" "" "\\xe2\\x82\\xac"');
    assert.deepEqual(await all(reader.fromRight('list', 3)), ['a', 'b c', '', '€']);
    assert.deepEqual(await all(reader.fromRight('nothing', 3)), []);
    await type('ZADD set 2.5 late', 'ZADD set 1 soon');
    assert.deepEqual(await all(reader.sorted('set', 1)), [
      ['soon', 1],
      ['late', 2.5],
    ]);
    await type('HSET h:1 name one data "1\\r\\n2"', 'HSET h:3 name three');
    assert.deepEqual(await all(reader.hashes(['h:1', 'h:2', 'h:3'], ['name', 'data'])), [
      { name: 'one', data: '1\r\n2' },
      {},
      { name: 'three' },
    ]);
    assert.deepEqual((await all(reader.keys('h:*'))).sort(), ['h:1', 'h:3']);
    assert.equal(reader.missed, 0);
  });

  it('reads answers that are larger than any piece of them that arrives', async () => {
    await type('SETRANGE big 3000000 x', "EVAL \"redis.call('HSET', 'h:big', 'data', redis.call('GET', 'big'))\" 0");
    const [{ data }] = await all(reader.hashes(['h:big'], ['data']));
    assert.equal(data.length, 3_000_001);
    await type("EVAL \"for i = 1, 5000 do redis.call('LPUSH', 'long', i) end\" 0");
    assert.deepEqual((await all(reader.fromRight('long', 1000))).slice(-2), ['4999', '5000']);
  });

  it('counts what others take while a list is read: indices move, and some are passed over', async () => {
    await type('LPUSH taken 1 2 3 4 5 6');
    const read = [];
    for await (const page of reader.fromRight('taken', 2)) {
      read.push(...page);
      if (read.length === 2) await type('RPOP taken', 'RPOP taken');
    }
    assert.deepEqual(read, ['1', '2', '5', '6']);
    assert.equal(reader.missed, 2);
    await type('LPUSH grows 1 2 3');
    for await (const _ of reader.fromRight('grows', 2)) await type('LPUSH grows 9');
    assert.equal(reader.missed, 2, 'what is added is no loss');
  });

  it('gives its password, and never shows it', async () => {
    await typed(source.port, ['ACL SETUSER reader on >s3cret/@ ~* +@read +select']);
    const url = source.url.replace('//', '//reader:s3cret%2F%40@');
    const allowed = await Redis.open(url);
    assert.equal(await allowed.number('LLEN', 'nothing'), 0);
    allowed.close();
    await assert.rejects(Redis.open(url.replace('s3cret', 'wrong')), (error) => {
      assert.match(error.message, /WRONGPASS/);
      assert.doesNotMatch(error.message + error.hint, /wrong%2F/);
      return true;
    });
    await assert.rejects(Redis.open('http://localhost'), /is not an address of Redis/);
  });
});
