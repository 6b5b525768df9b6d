/** `tocsin top` */
import type { Command } from 'commander';
import type { Session } from '../../contract/session';
import { print, remote } from '../command';
import { type ConnectionOptions, endpointOf } from '../connection';
import { CliError, EXIT, usageError } from '../failure';
import type { Terminal } from '../output';
import { type Api, createApi } from '../top/api';
import { arrived } from '../top/happen';
import { begin, tabsOf } from '../top/model';
import type { PageId, PagePlace } from '../top/page';
import { PAGES, pageOf } from '../top/pages/table';
import { type Line, renderWhole } from '../top/render';
import { runTop } from '../top/run';
import { bare, painted } from '../top/style';

interface Options extends ConnectionOptions {
  once?: boolean;
  state?: string;
  q?: string;
}

/** Width of what is printed where there is no window. */
const PRINTED_WIDTH = 160;

export function topCommand(terminal: Terminal): Command {
  const names = PAGES.filter(({ key }) => key !== undefined).map(({ id }) => id);
  return remote('top', 'watch the queues and act on them, in the terminal')
    .argument('[page]', `page to open: ${names.join(', ')}; or queue, job, workflow with a name`)
    .argument('[name]', 'name of the queue, id of the job or workflow')
    .option('--state <state>', 'only jobs, failures or workflows in this state')
    .option('--q <words>', 'only rows that contain these words')
    .option('--once', 'print the page and exit')
    .action(async (page: string | undefined, name: string | undefined, options: Options) => {
      const endpoint = endpointOf(options, terminal.env);
      const place = placeOf(page, name, options);
      const stop = new AbortController();
      const api = createApi(endpoint, stop.signal);
      try {
        const session = await api.get<Session>('/admin/session');
        const { screen } = terminal;
        const color = !terminal.env.NO_COLOR;
        if (options.once || options.json || !screen) {
          return await printPage(terminal, api, session, place, options.json === true);
        }
        mustSee(session, place);
        const { url } = endpoint;
        const exitCode = await runTop({ ...{ api, session, place, url, screen, color }, now: terminal.now });
        if (exitCode !== EXIT.ok) throw new CliError('Terminated by a signal.', undefined, 'signal', exitCode);
      } finally {
        stop.abort();
      }
    });
}

async function printPage(terminal: Terminal, api: Api, session: Session, place: PagePlace | undefined, json: boolean) {
  mustSee(session, place);
  const first = begin(session, place);
  const page = pageOf(first.state.place.page);
  const answer = await page.load(api, first.state.place);
  const { state } = arrived(first.state, first.state.serial, () => answer, true);
  const now = terminal.now();
  const width = terminal.screen?.columns() ?? PRINTED_WIDTH;
  const written = (line: Line) => (terminal.screen ? painted(line, !terminal.env.NO_COLOR) : bare(line));
  const lines = () => renderWhole(state, width, now).map((line) => written(line).trimEnd());
  print(terminal, json, { page: page.id, ...(answer as object) }, () => lines().join('\n'));
}

/** @throws {CliError} when this key may not see the page, or none */
function mustSee(session: Session, place: PagePlace | undefined): void {
  const scope = place && pageOf(place.page).scope;
  if (scope === undefined ? tabsOf(session).length > 0 : session.scopes.includes(scope)) return;
  const what = place ? `not see ${pageOf(place.page).title.toLowerCase()}` : 'see no page';
  const hint = `It has the role ${session.role}${scope ? `; the page needs ${scope}` : ''}.`;
  throw new CliError(`This key may ${what}.`, hint, 'forbidden');
}

/** @throws {CliError} for a page or state that is none */
function placeOf(page: string | undefined, name: string | undefined, { state, q }: Options): PagePlace | undefined {
  if (page === undefined) {
    if (state === undefined && q === undefined) return undefined;
    return placeOf('jobs', name, { ...(state && { state }), ...(q && { q }) });
  }
  const found = PAGES.find(({ id }) => id === page);
  if (!found) throw usageError(`${page} is not a page.`, `Pages are ${PAGES.map(({ id }) => id).join(', ')}.`);
  const takesName = found.key === undefined;
  if (takesName && name === undefined) throw usageError(`Which ${page}?`, `tocsin top ${page} <name>`);
  if (!takesName && name !== undefined) throw usageError(`${page} takes no name.`);
  if (state !== undefined && !found.states?.includes(state)) {
    throw usageError(`${state} is not a state on ${page}.`, found.states && `States are ${found.states.join(', ')}.`);
  }
  return { page: page as PageId, ...(name && { name }), ...(state && { state }), ...(q && { q }) };
}
