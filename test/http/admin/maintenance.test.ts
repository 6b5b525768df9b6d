/** What maintenance answers, and refuses. */
import { describe, expect, it } from 'vitest';
import { clock, HOUR, iso, MINUTE, T0 } from '../../support/clock';
import { server } from '../../support/server';

server.emptyBeforeEach();
clock.startAtT0();

const PATH = '/ojs/v1/admin/system/maintenance';
const ALIAS = '/ojs/v1/admin/maintenance';
const OFF = {
  enabled: false,
  maintenance: false,
  reason: null,
  started_at: null,
  ends_at: null,
  enabled_at: null,
  estimated_end: null,
};
const on = (reason: string | null, start: number, end: number | null) => {
  const [started, ends] = [iso(start), end === null ? null : iso(end)];
  const names = { started_at: started, ends_at: ends, enabled_at: started, estimated_end: ends };
  return { enabled: true, maintenance: true, reason, ...names };
};

describe('maintenance', () => {
  it('is off at first, begins with a reason and a length, changes, and ends, under both paths', async () => {
    expect(await server.ok(200, 'GET', PATH)).toEqual(OFF);
    const body = { enabled: true, reason: 'moving', duration: 'PT1H' };
    expect(await server.ok(200, 'POST', ALIAS, body)).toEqual(on('moving', T0, T0 + HOUR));
    clock.at(MINUTE);
    const longer = { enabled: true, estimated_duration: '2h' };
    expect(await server.ok(200, 'POST', PATH, longer)).toEqual(on(null, T0, T0 + MINUTE + 2 * HOUR));
    expect(await server.ok(200, 'GET', ALIAS)).toEqual(on(null, T0, T0 + MINUTE + 2 * HOUR));
    expect(await server.ok(200, 'POST', PATH, { enabled: false })).toEqual(OFF);
    expect(await server.ok(200, 'POST', PATH, { enabled: false })).toEqual(OFF);
  });

  it('is over at its end, and the next one begins again', async () => {
    await server.ok(200, 'POST', PATH, { enabled: true, duration: '1h' });
    clock.at(HOUR);
    expect(await server.ok(200, 'GET', PATH)).toEqual(OFF);
    expect(await server.ok(200, 'POST', PATH, { enabled: true })).toEqual(on(null, T0 + HOUR, null));
  });

  it.each([
    [{}, 'enabled'],
    [{ enabled: 'yes' }, 'enabled'],
    [{ enabled: true, duration: 'soon' }, 'duration'],
    [{ enabled: true, duration: 0 }, 'duration'],
    [{ enabled: true, estimated_duration: -1 }, 'estimated_duration'],
    [{ enabled: true, reason: 7 }, 'reason'],
    [{ enabled: true, reason: 'x'.repeat(1001) }, 'reason'],
  ])('refuses %j and stays as it was', async (body, field) => {
    const { status, body: answer } = await server.call('POST', PATH, body);
    expect([status, answer.error?.details]).toEqual([400, expect.objectContaining({ field })]);
    expect(await server.ok(200, 'GET', PATH)).toEqual(OFF);
  });
});
