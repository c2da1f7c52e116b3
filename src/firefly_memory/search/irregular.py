"""Irregular forms: those of a word whose stems differ. Each line of a language has a word, and then its other forms.

A form that is more often another word is left out, such as ``rose``, ``ground`` and ``leaves``.
"""

from __future__ import annotations

IRREGULAR = {
    "english": """
        arise arose arisen; awake awoke awoken; beat beaten; become became; begin began begun; bend bent; bind bound;
        bite bitten; bleed bled; blow blew blown; break broke broken; breed bred; bring brought; build built;
        burn burnt; buy bought; catch caught; choose chose chosen; cling clung; come came; creep crept; deal dealt;
        dig dug; draw drew drawn; dream dreamt; drink drank drunk; drive drove driven; eat ate eaten; fall fell fallen;
        feed fed; feel felt; fight fought; find found; flee fled; fling flung; fly flew flown; forbid forbade forbidden;
        forget forgot forgotten; forgive forgave forgiven; freeze froze frozen; get got gotten; give gave given;
        go goes went gone; grow grew grown; hang hung; hear heard; hide hid hidden; hold held; keep kept; kneel knelt;
        know knew known; lay laid; lead led; lean leant; leap leapt; learn learnt; leave left; lend lent; light lit;
        lose lost; make made; mean meant; meet met; mislead misled; mistake mistook mistaken; overcome overcame;
        overtake overtook overtaken; pay paid; prove proven; rebuild rebuilt; repay repaid; ride rode ridden;
        ring rang rung; rise risen; run ran; say said; see saw seen; seek sought; sell sold; send sent; sew sewn;
        shake shook shaken; shine shone; shoot shot; show shown; shrink shrank shrunk; sing sang sung; sink sank sunk;
        sit sat; sleep slept; slide slid; smell smelt; sow sown; speak spoke spoken; spell spelt; spend spent;
        spill spilt; spin spun; spit spat; spoil spoilt; spring sprang sprung; stand stood; steal stole stolen;
        stick stuck; sting stung; stink stank stunk; stride strode; strike struck; strive strove; swear swore sworn;
        sweep swept; swell swollen; swim swam swum; swing swung; take took taken; teach taught; tear tore torn;
        tell told; think thought; throw threw thrown; tread trod trodden; undergo underwent undergone;
        understand understood; undertake undertook undertaken; wake woke woken; wear wore worn; weave wove woven;
        weep wept; win won; withdraw withdrew withdrawn; write wrote written;
        calf calves; child children; foot feet; goose geese; half halves; knife knives; life lives; loaf loaves;
        man men; mouse mice; ox oxen; penny pence; person people; scarf scarves; thief thieves;
        tooth teeth; wife wives; wolf wolves; woman women
    """,
}
