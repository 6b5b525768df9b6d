/** `tocsin alerts`, with `show`, `add`, `change`, `pause`, `resume` and `remove` */
import type { Command } from 'commander';
import type { Alert } from '../../client/alerts';
import { pathTo } from '../../client/transport';
import type { Session } from '../command';
import type { Terminal } from '../output';
import { bodyOf, fromFile, listed, removal, resourceCommand, shown, verb } from '../resource';
import { ago, type Column } from '../views';

interface Members {
  name?: string;
  queue?: string;
  metric?: string;
  above?: string;
  for?: string;
  webhook?: string;
  file?: string;
}

const COLUMNS: readonly Column<Alert>[] = [
  ['ID', ({ id }) => id],
  ['STATE', ({ active, state }) => (active ? state : 'off')],
  ['NAME', ({ name }) => name],
  ['QUEUE', ({ queue }) => queue ?? 'each'],
  ['FIRES', ({ metric, above, for: least }) => `${metric} > ${above}${least === 'PT0S' ? '' : ` for ${least}`}`],
  ['SINCE', ({ since }, now) => ago(since, now)],
  ['LAST', ({ lastValue }) => lastValue],
];

export function alertsCommand(terminal: Terminal): Command {
  return resourceCommand(terminal, {
    name: 'alerts',
    summary: 'list alert rules',
    list: (opened) => listed(opened, 'alerts', opened.tocsin.alerts.list(), COLUMNS, 'No alert rules.'),
    one: [['<id>', 'id of the rule']],
    verbs: [
      verb({
        name: 'show',
        summary: 'show a rule and its state in each queue',
        run: async (opened, id = '') => shown(opened, 'alert', await opened.tocsin.alerts.get(id)),
      }),
      verb<Members>({
        name: 'add',
        summary: 'create a rule',
        takes: [['[name]', 'display name']],
        options: members,
        run: async (opened, name) =>
          shown(opened, 'alert', await opened.write('POST', '/admin/alerts', bodyFrom(opened, { name }))),
      }),
      verb<Members>({
        name: 'change',
        summary: 'change a rule',
        options: (command) => members(command.option('--name <text>', 'display name')),
        run: (opened, id = '') => change(opened, id, bodyFrom(opened, { name: opened.options.name })),
      }),
      verb({
        name: 'pause',
        summary: 'pause a rule; its firing alerts resolve',
        run: (opened, id = '') => change(opened, id, { active: false }),
      }),
      verb({
        name: 'resume',
        summary: 'resume a rule',
        run: (opened, id = '') => change(opened, id, { active: true }),
      }),
      removal('the rule', ({ tocsin }, id = '') => tocsin.alerts.delete(id)),
    ],
  });
}

const change = async (opened: Session<object>, id: string, body: object) =>
  shown(opened, 'alert', await opened.write('PATCH', pathTo`/admin/alerts/${id}`, body));

function members(command: Command): Command {
  return fromFile(
    command
      .option('--queue <name>', 'watch only this queue; default: each queue separately')
      .option('--metric <metric>', 'error_rate, oldest_age, depth, dead_letters')
      .option('--above <n>', 'threshold: a number; for oldest_age seconds, or such as 5m')
      .option('--for <duration>', 'time the metric must stay above the threshold: 1m, PT1M')
      .option('--webhook <id>', 'notify only this webhook; default: all that subscribe to alert.*'),
  );
}

function bodyFrom({ options }: Session<Members>, { name }: { name: string | undefined }): Record<string, unknown> {
  const { queue, metric, above, for: least, webhook, file } = options;
  const bound = above !== undefined && above.trim() !== '' && !Number.isNaN(Number(above)) ? Number(above) : above;
  return bodyOf(file, { name, queue, metric, above: bound, for: least, subscription_id: webhook });
}
