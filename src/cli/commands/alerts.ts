import type { Alert } from '../../client/alerts';
import { pathTo } from '../../client/transport';
import { action, resource, type Session } from '../command';
import { bodyOf, FILE, listed, removal, shown } from '../resource';
import { ago, type Column } from '../views';

const COLUMNS: readonly Column<Alert>[] = [
  ['ID', ({ id }) => id],
  ['STATE', ({ active, state }) => (active ? state : 'off')],
  ['NAME', ({ name }) => name],
  ['QUEUE', ({ queue }) => queue ?? 'each'],
  ['FIRES', ({ metric, above, for: least }) => `${metric} > ${above}${least === 'PT0S' ? '' : ` for ${least}`}`],
  ['SINCE', ({ since }, now) => ago(since, now)],
  ['LAST', ({ lastValue }) => lastValue],
];

/** A number stays one: anything else is for the server to judge. */
const bound = (text: string) => (text.trim() !== '' && !Number.isNaN(Number(text)) ? Number(text) : text);

const MEMBERS = {
  queue: ['--queue <name>', 'watch only this queue; default: each queue separately'],
  metric: ['--metric <metric>', 'error_rate, oldest_age, depth, dead_letters'],
  above: ['--above <n>', 'threshold: a number; for oldest_age seconds, or such as 5m', bound],
  for: ['--for <duration>', 'time the metric must stay above the threshold: 1m, PT1M'],
  subscription_id: ['--webhook <id>', 'notify only this webhook; default: all that subscribe to alert.*'],
  ...FILE,
} as const;

export const alerts = resource(
  action('alerts', 'list alert rules', {}, (opened) =>
    listed(opened, 'alerts', opened.tocsin.alerts.list(), COLUMNS, 'No alert rules.'),
  ),
  [['<id>', 'id of the rule']],
  [
    action('show', 'show a rule and its state in each queue', {}, async (opened, id) =>
      shown(opened, 'alert', await opened.tocsin.alerts.get(id)),
    ),
    action('add', 'create a rule', { takes: [['[name]', 'display name']], flags: MEMBERS }, async (opened, name) => {
      const body = bodyOf({ ...opened.members, name });
      return shown(opened, 'alert', await opened.write('POST', '/admin/alerts', body));
    }),
    action(
      'change',
      'change a rule',
      { flags: { name: ['--name <text>', 'display name'], ...MEMBERS } },
      (opened, id) => change(opened, id, bodyOf(opened.members)),
    ),
    action('pause', 'pause a rule; its firing alerts resolve', {}, (opened, id) =>
      change(opened, id, { active: false }),
    ),
    action('resume', 'resume a rule', {}, (opened, id) => change(opened, id, { active: true })),
    removal('the rule', ({ tocsin }, id = '') => tocsin.alerts.delete(id)),
  ],
);

const change = async (opened: Session, id: string, body: object) =>
  shown(opened, 'alert', await opened.write('PATCH', pathTo`/admin/alerts/${id}`, body));
