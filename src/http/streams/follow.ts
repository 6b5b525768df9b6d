/**
 * An output stream as an event stream: pages up to its head, then what the queue shows. Whatever does not fit (a slow
 * client, a lost message, a connection that was opened again) is read by page.
 */
import { Feed } from '../../across/feed/feed';
import { ENDS } from '../../durable/event-log';
import { own } from '../../job/own';
import { placeText, readStreamPlace, type StreamPlace } from '../../job/streams';
import { safely } from '../../job/thrown';
import { type AppContext, asShown } from '../context';
import { EventStream, headersOnly } from '../events/event-stream';
import { callJob, pathParam } from '../request/path';

/** Characters of a page. */
const PAGE = 256 * 1024;

/** A chunk as the caller may see it. */
export const chunkShown = (c: AppContext, name: string, chunk: unknown): unknown =>
  own(asShown(c)({ stream: { [name]: chunk } }).stream, name);

export async function followStream(c: AppContext, name: string, asked: StreamPlace | undefined) {
  if (c.req.method === 'HEAD') return headersOnly(c);
  const feed = await Feed.open(c.env, { job: pathParam(c, 'id') }, { types: [...ENDS], stream: name });
  let place = lastEvent(c, asked);
  const read = () => callJob(c, (queue, id) => queue.streamPage(id, name, place, PAGE));
  let page = await feed.orClose(read());
  /** Is there more than was sent? */
  let isBehind = false;
  let wake: (() => void) | undefined;
  const more = (): void => {
    isBehind = true;
    wake?.();
  };
  const over = (): void => {
    feed.close();
    more();
  };
  const out = new EventStream(c, { beat: () => feed.beat(), over });
  const send = (run: number, first: number, chunks: readonly unknown[]): void => {
    if (place && place.run !== run) out.message(placeText(place), { run }, 'reset');
    if (chunks.length === 0) return;
    out.shownAlready(
      chunks.map((chunk, at) => ({
        id: placeText({ run, n: first + at }),
        event: 'chunk',
        data: { chunk: chunkShown(c, name, chunk) },
      })),
    );
    place = { run, n: first + chunks.length - 1 };
  };
  const pump = async (): Promise<void> => {
    while (!out.isOver) {
      const { state, run, first, chunks, isWhole } = page;
      if (run !== undefined)
        send(
          run,
          first,
          chunks.map((text) => JSON.parse(text)),
        );
      if (isWhole && state !== 'open') {
        out.message(place ? placeText(place) : '0', { state }, 'end');
        return out.end();
      }
      while (isWhole && !isBehind) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      wake = undefined;
      isBehind = false;
      await out.room();
      if (!out.isOver) page = await read();
    }
  };
  feed.start({
    stream: ({ run, first, chunks }) => {
      const next = place?.run === run ? place.n + 1 : 0;
      if (!wake || isBehind || !chunks || first > next || !out.hasRoom) return more();
      if (first + chunks.length > next) send(run, next, chunks.slice(next - first));
    },
    events: more,
    gap: more,
    dropped: more,
    ended: () => out.end(),
  });
  // When it cannot be read any more, the client connects again and gets the reason.
  pump().catch(() => out.end());
  return out.response();
}

/** A client that comes back names the last chunk that it had, whatever its address says. */
function lastEvent(c: AppContext, asked: StreamPlace | undefined): StreamPlace | undefined {
  const header = c.req.header('Last-Event-ID');
  if (!header) return asked;
  return safely(() => readStreamPlace(header, 'Last-Event-ID'), { run: 0, n: 0 });
}
