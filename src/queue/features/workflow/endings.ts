/** Notifies workflows of the ends of their jobs. A repeated notice changes nothing. */
import { type MessageKind, posted } from '../../../durable/outbox-relay';
import type { Ending } from '../../../rpc/workflow';
import type { Host } from '../../feature';
import { ENDING } from '../../store/workflow-endings';
import { forgetStarts, startsOf } from './starts';

/** Ends in one notice, unless a single outbox message has more. */
const MAX_ENDINGS = 100;

const read = ({ data }: { data: string }) => JSON.parse(data) as Ending[];

export const endingMessages = ({ q, write, others }: Host): MessageKind =>
  posted(q.store.outbox, write, {
    kind: ENDING,
    together: { most: MAX_ENDINGS, itemsIn: (message) => read(message).length },
    send: async (workflow, messages, taken) => {
      const starts = startsOf(q.store.sql, workflow);
      const receipt = await others.workflow(workflow).stepsEnded(q.name, messages.flatMap(read));
      await taken((now) => {
        forgetStarts(q.store.sql, workflow, starts, receipt.unrecorded);
        for (const { type, data } of receipt.events) q.observed.events.add(type, workflow, now, data);
      });
    },
  });
