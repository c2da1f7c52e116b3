"""Words that say nothing about the subject of a question. They stay in the index, and are left out of questions.

Words with an apostrophe are listed in their parts, as they are split: ``don't`` is ``don t``.
"""

# ruff: noqa: RUF001 - Cyrillic letters look like Latin ones

from __future__ import annotations

STOP_WORDS = {
    "danish": """
        af alle alt at blev bliver da de dem den der deres det dette dig din du efter eller en er et for fra få ham han
        hans har havde hende hendes her hos hun hvad hvem hvilken hvilket hvis hvor hvordan hvorfor hvornår i ikke ind
        jeg jer jo kan man med meget men mig min mod må ned noget nogle nu når og også om op os over på sig sin skal
        som så til ud under var vi vil ville var være været
    """,
    "dutch": """
        aan al alles als bij dan dat de der deze die dit doch doen door dus een en er had heb hebben heeft hem het hier
        hij hoe hun iemand ik in is ja je kan kon me meer men met mij mijn naar niet niets nog nu of om omdat onder ons
        ook op over te tegen toch toen tot u uit uw van veel voor waar waarom wanneer want waren was wat we wel welke
        werd wie wij wil worden wordt zal ze zelf zich zij zijn zo zonder zou
    """,
    "english": """
        a about above after again against ain all am an and any are aren as at be because been before being below
        between both but by can could couldn d did didn do does doesn doing don down during each few for from further
        had hadn has hasn have haven having he her here hers herself him himself his how i if in into is isn it its
        itself just ll m ma me might mightn more most must mustn my myself needn no nor not now o of off on once only
        or other our ours ourselves out over own re s same shall shan she should shouldn so some such t than that the
        their theirs them themselves then there these they this those through to too under until up ve very was wasn we
        were weren what when where which while who whom whose why will with won would wouldn y you your yours yourself
        yourselves
    """,
    "french": """
        ai as au aux avait avec avez avons c ce ces cet cette comment d dans de des du elle elles en est et eu été eux
        il ils j je l la le les leur leurs lui m ma mais me mes moi mon même n ne nos notre nous on ont ou où par pas
        pour pourquoi qu quand que quel quelle quelles quels qui quoi s sa se ses son sont sur t ta te tes toi ton tu un
        une vos votre vous y à étaient était être
    """,
    "german": """
        aber alle als also am an auch auf aus bei bin bis bist da dann das dass dein dem den der des dich die dies diese
        dieser dieses dir doch du durch ein eine einem einen einer eines er es euch euer für gegen hab habe haben hat
        hatte hatten hier hin ich ihm ihn ihnen ihr ihre im in ist ja jede jeder jedes kann kein keine man mein mich mir
        mit muss nach nicht nichts noch nun nur ob oder ohne sehr sein seine sich sie sind so soll um und uns unser
        unter vom von vor wann war waren warst warum was weil welche welcher welches wem wen wenn wer werde werden wie
        wieder will wir wird wo wurde wurden zu zum zur zwischen über
    """,
    "italian": """
        a ad agli ai al alla alle allo anche avere aveva c che chi ci come con cosa cui d da dagli dai dal dalla dalle
        dei del della delle dello di dove e ed era erano essere fu gli ha hai hanno ho i il in io l la le lei li lo loro
        lui ma mi mia mie miei mio ne nei nel nella nelle no noi non nostra nostro o per perché più quale quali quando
        quanto quella quelle quelli quello questa queste questi questo se sei si sia siamo sono sta su sua sue sui sul
        sulla suo suoi ti tra tu tua tuo un una uno vi voi è
    """,
    "norwegian": """
        alle at av ble bli blir da de dem den denne der deres det dette deg din du eller en enn er et for fra få ham han
        hans har hadde henne hennes her hos hun hva hvem hvilken hvis hvor hvordan hvorfor i ikke inn jeg kan man med
        meg men min mot må ned noe noen nå når og også om opp oss over på seg selv si sin skal som så til ut under var
        vi vil ville vær være vært
    """,
    "portuguese": """
        a ao aos as até com como da das de dela dele deles do dos e ela elas ele eles em entre era eram essa esse esta
        este estou está estão eu foi foram há isso isto já lhe mais mas me mesmo meu meus minha muito na nas no nos
        nossa nosso não nós o onde os ou para pela pelo por porque qual quando que quem se sem ser seu seus sua suas são
        só também te tem tinha tu tua um uma você vocês à às é
    """,
    "russian": """
        а без бы был была были было быть в вам вас весь во вот все всё вы где да для до его ее её ей ему если есть еще
        ещё же за и из или им их к как какая какие какой когда кого кто ли мне меня мой моя мы на над надо нам нас не
        него нее нет ни них но ну о об он она они оно от по под почему при про с сам себя со так там то тоже только том
        тот ты у уже чего чем что чтобы эта эти это этот я
    """,
    "spanish": """
        a al algo antes como con contra cual cuál cuando cuándo de del desde donde dónde durante e el ella ellas ellos
        en entre era eran es esa ese eso esta estaba este esto está están fue fueron ha había han has hay he la las le
        les lo los me mi mis mucho muy más ni no nos nosotros nuestra nuestro o os para pero por porque que quien quién
        qué se ser si sin sobre son su sus sí también te tenía ti tiene tu tus tú un una uno unos y ya yo él
    """,
    "swedish": """
        alla allt att av blev bli blir de dem den denna deras dess det detta dig din du där då efter ej eller en er ett
        från för ha hade han hans har henne hennes hon honom hur här i icke inte jag ju kan man med mellan men mig min
        mot mycket ni nu när och om oss på samma sedan sig sin sitt som så till under upp ut utan vad var varför vart
        vem vi vid vilka vilken vilket vår än är över
    """,
}
