"""Short lists of words that name nothing worth a node, and what they are kept for.

The lists are small on purpose: a word stands here only where it would link passages that have
nothing to do with each other.
"""

from __future__ import annotations

HOLLOW = frozenset(
    # people and groups of a study
    """patient person people man woman child adult infant boy girl individual subject participant volunteer
    case control group cohort population family member user author researcher investigator clinician
    physician doctor other others someone everyone anyone everybody nobody resident human-being
    """
    # the study and its parts
    """study trial experiment analysis result finding data dataset evidence conclusion background objective
    aim purpose method methodology approach procedure protocol measure measurement assessment evaluation
    observation investigation report review article paper literature survey test model hypothesis question
    answer table figure example section chapter summary abstract introduction discussion overview baseline
    follow-up followup outcome endpoint end-point comparison intervention criterion sample
    year month week day hour minute second time date century decade age
    """.split()
)
"""Heads that are no entity even with a modifier; "rabies patients" still gives "rabies"."""

GENERIC = HOLLOW | frozenset(
    # amounts, times and places without a name
    """number amount level dose dosage rate ratio percentage percent proportion majority minority half part
    third quarter km kilometer kilometre mile meter metre foot acre mg kg ml mm cm mmhg
    portion range value mean median average total degree extent score quantity concentration size length
    increase decrease reduction change difference variation improvement lack absence presence
    period duration interval onset
    morning night today beginning end start stage phase course place location area region site side way
    direction distance point position top bottom lot kind sort type form variety series range set pair
    list addition term name word title
    """
    # relations and abstractions that only have meaning with an of
    """cause effect role risk factor use function purpose mechanism action activity treatment therapy
    management diagnosis prevention incidence prevalence history sign symptom feature characteristic property
    condition disease disorder syndrome illness agent drug medication medicine substance process reason basis
    aspect problem issue fact thing matter situation circumstance occurrence event manner means importance
    significance relationship relation association correlation link response development involvement
    need ability possibility likelihood potential probability frequency combination contrast
    view opinion knowledge understanding information detail
    # processes: what they are of is the entity ("release of insulin")
    excretion release secretion production inhibition activation formation uptake clearance intake removal
    rise fall loss gain rest tendency attack crisis
    # parts and roles that a general text names all the time
    behalf charge field branch chief editor president founder author citizen birthplace border east west north
    south example research publication concept idea name-sake namesake home sense interest
    source danger share difficulty cell system life hand worst
    """.split()
)
"""Heads that are no entity alone ("this disease", "the risk") and are one with a name before them."""

QUANTITIES = frozenset(
    """number amount level proportion percentage majority minority half part portion variety range series set
    pair type kind sort form group case patient member percent total lack list combination example one third
    quarter""".split()
)
"""Nouns that an ``of`` looks through: "a number of drugs" is about drugs."""

WEAK_MODIFIERS = frozenset(
    """new old recent previous current present early late first second third last next final initial main major
    minor large small great big little high low higher lower highest lowest good bad better best important
    significant common rare frequent infrequent different similar same various several many few multiple single
    certain other own such possible potential likely unlikely known unknown typical usual general specific
    particular whole entire full total complete partial additional further following subsequent prior severe mild
    moderate serious marked profound strong weak young elderly healthy normal available effective useful
    numerous extensive considerable substantial more most less least only so-called well-known famous notable
    classic commonest oldest chief long short
    overall increased decreased reduced enhanced elevated primary-care much enough mere very
    first-line common-most 's""".split()
)
"""Adjectives left out of a name: "a severe lead poisoning" is lead poisoning."""

MONTHS = frozenset(
    """january february march april may june july august september october november december monday tuesday
    wednesday thursday friday saturday sunday""".split()
)

NO_TERMS = frozenset(
    """affected aggression-free aman avoid beans bend bilateral buffer calculus central collecting collection
    combined corn cutting dala diurnal falls fall fear focal frequency frequent generalized gambling hard healthy
    hoarding illusion indicator intensity intermittent introversion ivor jumping left localized maid mild moderate
    moderates occasional onset others peripheral position profound progressive prolonged recurrent rhein right
    rights rocker sage said secret severe severity silverado stable stare strain tender time unaffected unilateral
    water whitehead zona acute chronic human animal male female death birth blood speech walking crying
    pronounced adult child rest disease disorder syndrome complication infection attack control drug
    symptom sign placebo solution dose vehicle food agent exposure response relapse remission recurrence
    can may will with from that this have been were when what which who whose then than also into over under
    state area base impact contact marked patient today focus ease clear advance prime once""".split()
)
"""Terms of the vocabularies that are ordinary English words, found by counting matches in general text."""

NOT_IN_QUESTIONS = frozenset("following statement option choice true false correct answer explanation".split())
"""Further generic heads of exam questions."""

ANAPHORIC = frozenset(
    """drug medication medicine disease disorder syndrome condition illness infection agent substance compound
    virus bacterium parasite protein enzyme gene hormone vitamin deficiency poisoning defect treatment therapy
    company film movie album song band book novel city town country county organization organisation school
    university college journal magazine newspaper series episode show game country state continent river
    team club person""".split()
)
"""Nouns that alone stand for something named before: "this drug", "the disease", "the journal"."""

SEATED = frozenset(
    """university college city kingdom republic state battle siege treaty county province duchy bishop archbishop
    king queen duke earl mayor""".split()
)
"""What a proper name begins with when its last part names a place of its own: "University of Copenhagen"."""

STANDS_FOR = frozenset(
    """drug medication medicine disease disorder syndrome condition illness infection company film movie album song
    band book novel city town country county organization organisation school university college journal
    magazine newspaper series episode show game state river team club""".split()
)
"""Of the anaphoric nouns, those wide enough to stand for any subject before them; "the enzyme" might be another."""
