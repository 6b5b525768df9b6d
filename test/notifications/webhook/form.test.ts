/** What a subscription is sent in the place of an event. */
import { describe, expect, it } from 'vitest';
import { bodyIn, type WebhookForm } from '../../../src/notifications/webhook/form';
import { readForm } from '../../../src/notifications/webhook/parse';

const event = (change: object = {}) => ({
  ...{ specversion: '1.0', id: 'evt_1', type: 'job.discarded', source: 'ojs://tocsin/queues/mail', subject: 'j1' },
  time: '2026-11-20T10:00:00.000Z',
  data: { job_id: 'j1', queue: 'mail', job_type: 'email.send', attempt: 3, error: { message: 'no <b> & "such"' } },
  ...change,
});
const alert = (type: string) =>
  event({
    type,
    subject: 'mail',
    data: { alert_id: 'al_1', name: 'late', metric: 'oldest_age', value: 312, above: 300, queue: 'mail' },
  });
const sent = (form: WebhookForm | undefined, given: object = event()) =>
  JSON.parse(bodyIn(form, JSON.stringify(given)));
const filled = (template: unknown, given?: object) => sent({ template }, given);

describe('without a form', () => {
  it('it is the event, byte for byte', () => {
    expect(bodyIn(undefined, '{"a": 1}')).toBe('{"a": 1}');
  });
});

describe('a message for Slack', () => {
  it('says what happened, and has no markup of others in it', () => {
    expect(sent('slack')).toEqual({
      text: '*job.discarded: email.send in mail*\nno &lt;b&gt; &amp; "such" – j1',
    });
    expect(sent('slack', alert('alert.firing'))).toEqual({
      text: '*late fires in mail*\noldest_age is 312; the bound is 300.',
    });
  });

  it('is short, whatever the event says', () => {
    const long = event({ data: { error: { message: '&'.repeat(100_000) }, job_type: 'x'.repeat(10_000) } });
    expect(sent('slack', long).text.length).toBeLessThanOrEqual(1_000);
  });
});

describe('an event for PagerDuty', () => {
  const form = { routing_key: 'R' };

  it('triggers an incident, and the event that ends it resolves the same', () => {
    const [firing, resolved] = ['alert.firing', 'alert.resolved'].map((type) => sent(form, alert(type)));
    expect(firing).toEqual({
      ...{ routing_key: 'R', event_action: 'trigger', dedup_key: 'tocsin/alert.firing/al_1/mail' },
      payload: {
        summary: 'late fires in mail: oldest_age is 312; the bound is 300.',
        ...{ source: 'ojs://tocsin/queues/mail', severity: 'critical', timestamp: '2026-11-20T10:00:00.000Z' },
        ...{ class: 'alert.firing', group: 'mail', custom_details: alert('alert.firing').data },
      },
    });
    expect(resolved).toMatchObject({ event_action: 'resolve', dedup_key: firing.dedup_key });
  });

  it('of a job is an incident of that job', () => {
    expect(sent(form)).toMatchObject({ dedup_key: 'tocsin/job.discarded/j1', payload: { severity: 'error' } });
    expect(sent(form, event({ type: 'job.completed' }))).toMatchObject({ payload: { severity: 'info' } });
  });
});

describe('a template', () => {
  it('has values in texts, and values themselves where a text is nothing else', () => {
    const template = {
      text: '{{type}} of {{ data.job_type }}, attempt {{data.attempt}}: {{data.error.message}}',
      list: ['{{data.attempt}}', '{{data.error}}', '{{data.nothing}}', 'no{{data.nothing}}thing', 7, null, true],
    };
    expect(filled(template)).toEqual({
      text: 'job.discarded of email.send, attempt 3: no <b> & "such"',
      list: [3, { message: 'no <b> & "such"' }, null, 'nothing', 7, null, true],
    });
  });

  it('stays JSON, and is filled once, whatever the values are', () => {
    const nasty = '"}, {{data.job_id}} $& \\ \u2028 {{constructor}}';
    expect(filled({ text: 'is {{data.error.message}}' }, event({ data: { error: { message: nasty } } }))).toEqual({
      text: `is ${nasty}`,
    });
  });

  it('reaches own members only', () => {
    const paths = ['constructor.name', 'data.__proto__', 'data.job_id.length', 'data.toString', 'data.list.length'];
    expect(filled(paths.map((path) => `x{{${path}}}`))).toEqual(Array(5).fill('x'));
    expect(filled(['{{data.list.1}}'], event({ data: { list: ['a', 'b'] } }))).toEqual(['b']);
  });

  it('makes a body of a bounded size', () => {
    const large = event({ data: { a: 'x'.repeat(100_000), b: { c: 'y'.repeat(100_000) } } });
    const template = Array(100).fill('{{data.b}}{{data.a}}');
    expect(bodyIn({ template }, JSON.stringify(large)).length).toBeLessThan(600_000);
    expect(bodyIn({ template: Array(100).fill('{{data}}') }, JSON.stringify(large)).length).toBeLessThan(600_000);
  });
});

describe('what a client says of the form', () => {
  it.each<[unknown, unknown]>([
    [{}, undefined],
    [{ format: null }, null],
    [{ format: 'slack' }, 'slack'],
    [{ format: 'pagerduty', routing_key: 'R1' }, { routing_key: 'R1' }],
    [{ format: { template: { a: '{{id}}' } } }, { template: { a: '{{id}}' } }],
    [{ format: { template: '{"a": "{{data.x}}"}' } }, { template: { a: '{{data.x}}' } }],
  ])('%j', (body, form) => {
    expect(readForm(body as Record<string, unknown>)).toEqual(form);
  });

  it.each<[string, object, string]>([
    ['another word', { format: 'teams' }, 'format'],
    ['PagerDuty without a key', { format: 'pagerduty' }, 'routing_key'],
    ['a key without PagerDuty', { format: 'slack', routing_key: 'R' }, 'routing_key'],
    ['a key with spaces', { format: 'pagerduty', routing_key: 'a b' }, 'routing_key'],
    ['no template', { format: {} }, 'format'],
    ['something beside it', { format: { template: {}, type: 'x' } }, 'format.type'],
    ['a text that is no JSON', { format: { template: '{"a": {{data.x}}}' } }, 'format.template'],
    ['a plain text', { format: { template: '"a"' } }, 'format.template'],
    ['a member that no event has', { format: { template: { a: '{{job.id}}' } } }, 'format.template'],
    ['an expression', { format: { template: { a: '{{data.x()}} {{1+1}}' } } }, 'format.template'],
    ['an empty path', { format: { template: { a: '{{}}' } } }, 'format.template'],
    ['too many placeholders', { format: { template: Array(101).fill('{{id}}') } }, 'format.template'],
    ['too much text', { format: { template: { a: 'x'.repeat(17_000) } } }, 'format.template'],
    ['too deep a nesting', { format: { template: JSON.parse('['.repeat(30) + ']'.repeat(30)) } }, 'format.template'],
  ])('is refused with %s', (_, body, field) => {
    try {
      readForm(body as Record<string, unknown>);
    } catch (error) {
      expect(error).toMatchObject({ data: { details: { field } } });
      return;
    }
    throw new Error('it was taken');
  });
});
