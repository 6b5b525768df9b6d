/** Telling workflows of the ends of their jobs. A workflow that is told of an end twice draws no second conclusion from it. */
import { type Kind, posted } from '../../../durable/courier';
import type { Ending } from '../../../rpc/workflow';
import type { Feature, Host } from '../../feature';
import { ENDING } from '../../store/endings';
import { forgetStarts, startsOf } from './starts';

/** Ends told at once, unless a single letter has more. */
const MAX_ENDINGS = 100;

const read = ({ data }: { data: string }) => JSON.parse(data) as Ending[];

/** The feature: it does nothing but tell. */
export function endings(host: Host): Feature {
  return { letters: [endingLetters(host)] };
}

function endingLetters({ q, write, others }: Host): Kind {
  return posted(q.store.outbox, write, {
    kind: ENDING,
    together: { most: MAX_ENDINGS, itemsIn: (letter) => read(letter).length },
    send: async (workflow, letters, taken) => {
      const starts = startsOf(q.store.sql, workflow);
      const receipt = await others.workflow(workflow).stepsEnded(q.name, letters.flatMap(read));
      await taken((now) => {
        forgetStarts(q.store.sql, workflow, starts, receipt.unrecorded);
        for (const { type, data } of receipt.events) q.observed.events.add(type, workflow, now, data);
      });
    },
  });
}
